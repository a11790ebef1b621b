//! What travels through the caller while its questions are answered.

use bytes::Bytes;
use trunkline_config::ServerName;
use trunkline_protocol::{Era, Refusal};
use trunkline_server::Call;

use crate::limits::HubLimits;

/// How a call begins: for the first time, or after questions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Resume {
    Fresh,
    /// With what the server wants to see again. How often it has come so far is counted, because a server could go on for
    /// ever with a caller who only does as it is told.
    Again {
        rounds: u16,
        polls: u16,
        /// The era in which the server was spoken to, which it wants to see this in.
        era: Era,
        /// In a box, since few calls have it.
        state: Box<Bytes>,
    },
}

impl Resume {
    /// Reads what a caller brings. It was sealed by us, so that it is what we wrote; but the server that it is for may have
    /// been replaced by another.
    ///
    /// # Errors
    /// [`Refusal::STALE_STATE`] if it is for another server.
    pub(super) fn of(call: &Call, server: &ServerName) -> Result<Self, Refusal> {
        match &call.continuation {
            None => Ok(Self::Fresh),
            Some(bytes) => Self::read(bytes, server).ok_or(Refusal::STALE_STATE),
        }
    }

    fn read(bytes: &Bytes, server: &ServerName) -> Option<Self> {
        let (era, rest) = bytes.split_first()?;
        let era = Era::ALL.get(usize::from(*era)).copied()?;
        let (rounds, rest) = rest.split_first_chunk::<2>()?;
        let (polls, rest) = rest.split_first_chunk::<2>()?;
        let (length, rest) = rest.split_first_chunk::<2>()?;
        let (name, state) = rest.split_at_checked(u16::from_le_bytes(*length).into())?;
        (name == server.as_str().as_bytes()).then(|| Self::Again {
            rounds: u16::from_le_bytes(*rounds),
            polls: u16::from_le_bytes(*polls),
            era,
            state: Box::new(bytes.slice_ref(state)),
        })
    }

    /// Returns what the next round begins with.
    ///
    /// # Errors
    /// There were too many rounds.
    pub(super) fn next(
        &self,
        state: Bytes,
        era: Era,
        is_poll: bool,
        limits: &HubLimits,
    ) -> Result<Self, Refusal> {
        let (rounds, polls) = match self {
            Self::Fresh => (0, 0),
            Self::Again { rounds, polls, .. } => (*rounds, *polls),
        };
        let (rounds, polls) = if is_poll { (rounds, polls + 1) } else { (rounds + 1, polls) };
        if rounds > limits.rounds || polls > limits.polls {
            return Err(
                Refusal::INTERNAL.because(format!("the server asked more than {} times", limits.rounds))
            );
        }
        Ok(Self::Again { rounds, polls, era, state: Box::new(state) })
    }

    pub(super) fn to_bytes(&self, server: &ServerName) -> Bytes {
        let Self::Again { rounds, polls, era, state } = self else { return Bytes::new() };
        let era = Era::ALL.iter().position(|known| known == era).and_then(|at| u8::try_from(at).ok());
        let name = server.as_str().as_bytes();
        // A name has at most 64 characters.
        let length = u16::try_from(name.len()).unwrap_or_default();
        [
            &[era.unwrap_or_default()][..],
            &rounds.to_le_bytes(),
            &polls.to_le_bytes(),
            &length.to_le_bytes(),
            name,
            state,
        ]
        .concat()
        .into()
    }

    /// Returns the era in which the call has begun, if it goes on.
    pub(super) fn era(&self) -> Option<Era> {
        match self {
            Self::Fresh => None,
            Self::Again { era, .. } => Some(*era),
        }
    }

    pub(super) fn is_again(&self) -> bool {
        matches!(self, Self::Again { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> ServerName {
        ServerName::parse(text).unwrap()
    }

    #[test]
    fn what_travels_is_read_back_for_the_same_server_alone() {
        let limits = HubLimits::default();
        let first =
            Resume::Fresh.next(Bytes::from_static(b"\"state\""), Era::Modern, false, &limits).unwrap();
        let second = first.next(Bytes::new(), Era::Legacy, true, &limits).unwrap();
        assert_eq!((first.era(), second.era()), (Some(Era::Modern), Some(Era::Legacy)));
        for resume in [first, second] {
            let bytes = resume.to_bytes(&name("ä b"));
            assert_eq!(Resume::read(&bytes, &name("ä b")), Some(resume));
            assert_eq!(Resume::read(&bytes, &name("a")), None);
            for cut in 0..bytes.len().min(7) {
                assert_eq!(Resume::read(&bytes.slice(..cut), &name("ä b")), None, "{cut}");
            }
        }
    }

    #[test]
    fn a_server_cannot_go_on_asking_for_ever() {
        let limits = HubLimits { rounds: 2, polls: 3, ..HubLimits::default() };
        for (is_poll, most) in [(false, 2), (true, 3)] {
            let mut resume = Resume::Fresh;
            for _ in 0..most {
                resume = resume.next(Bytes::new(), Era::Modern, is_poll, &limits).unwrap();
            }
            assert!(resume.next(Bytes::new(), Era::Modern, is_poll, &limits).is_err());
        }
    }
}
