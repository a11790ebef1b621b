use std::sync::Arc;

use trunkline_protocol::Refusal;

use crate::admission::{ByteBudget, BytePermit};
use crate::party::ClientParty;

/// Requests up to this size are not counted: the limits of connections and of calls bound what these hold.
pub(crate) const UNCOUNTED_BYTES: usize = 64 * 1024;

/// Reserves memory for a request of which so many bytes have arrived; a small one needs none.
///
/// Memory is reserved for bytes that have arrived, not for an announced length, or a few bytes could block the requests
/// of all other callers. The reservation doubles, so that a request in many pieces does not reserve for each.
///
/// # Errors
/// [`Refusal::TOO_MANY`].
pub(crate) fn reserve(
    budget: &Arc<ByteBudget>,
    party: &ClientParty,
    reserved: &mut Option<BytePermit>,
    bytes: usize,
) -> Result<(), Refusal> {
    let held = reserved.as_ref().map_or(0, BytePermit::bytes);
    if bytes <= UNCOUNTED_BYTES || bytes <= held {
        return Ok(());
    }
    let wanted = bytes.checked_next_power_of_two().unwrap_or(bytes);
    let is_reserved = match reserved {
        Some(reserved) => reserved.grow(wanted - held),
        None => {
            let mut first = budget.permit_for(party);
            let is_reserved = first.grow(wanted);
            *reserved = is_reserved.then_some(first);
            is_reserved
        }
    };
    match is_reserved {
        true => Ok(()),
        false => Err(Refusal::TOO_MANY.with_message("too many large requests at once; try again later")),
    }
}

#[cfg(test)]
mod tests {
    use trunkline_session::Principal;

    use super::*;

    const KIB: usize = 1024;

    #[test]
    fn request_memory_grows_with_the_request_and_is_released() {
        let unanswered = ByteBudget::new(1024 * KIB);
        let all = ClientParty::new(&Principal::Anonymous, None);
        let reserve = |reserved: &mut Option<BytePermit>, bytes| reserve(&unanswered, &all, reserved, bytes);
        let held = || unanswered.used() / KIB;
        let mut request = None;
        for (bytes, expected) in [(1, 0), (64, 0), (65, 128), (128, 128), (300, 512), (512, 512)] {
            assert_eq!(reserve(&mut request, bytes * KIB), Ok(()), "{bytes}");
            assert_eq!(held(), expected, "{bytes}");
        }
        let mut second = None;
        assert!(reserve(&mut second, 513 * KIB).unwrap_err().is_same_kind(&Refusal::TOO_MANY));
        assert!(second.is_none());
        assert_eq!(reserve(&mut second, 512 * KIB), Ok(()));
        assert!(reserve(&mut None, 65 * KIB).is_err());
        assert_eq!(reserve(&mut None, 64 * KIB), Ok(()), "small requests are always read");
        let mut request = request.unwrap();
        request.shrink_to(300 * KIB);
        assert_eq!(held(), 812);
        drop((request, second));
        assert_eq!(held(), 0);
    }
}
