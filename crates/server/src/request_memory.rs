use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use trunkline_protocol::Refusal;

/// Requests up to this size are not counted: the limits of connections and of calls bound what these hold.
pub(crate) const UNCOUNTED_BYTES: usize = 64 * 1024;

/// The bytes of large requests that are being read or answered, all callers together within one bound.
#[derive(Debug)]
pub(crate) struct RequestMemory {
    max: usize,
    used: AtomicUsize,
}

/// A permit for the memory of one request, as long as any of it is held.
#[derive(Debug)]
pub(crate) struct RequestMemoryPermit {
    memory: Arc<RequestMemory>,
    bytes: usize,
}

impl RequestMemory {
    pub(crate) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { max: most, used: AtomicUsize::new(0) })
    }

    /// Reserves memory for a request of which so many bytes have arrived; a small one needs none.
    ///
    /// Memory is reserved for bytes that have arrived, not for an announced length, or a few bytes could block the
    /// requests of all other callers. The reservation doubles, so that a request in many pieces does not reserve for
    /// each.
    ///
    /// # Errors
    /// [`Refusal::TOO_MANY`].
    pub(crate) fn reserve(
        self: &Arc<Self>,
        reserved: &mut Option<RequestMemoryPermit>,
        bytes: usize,
    ) -> Result<(), Refusal> {
        let held = reserved.as_ref().map_or(0, |reserved| reserved.bytes);
        if bytes <= UNCOUNTED_BYTES || bytes <= held {
            return Ok(());
        }
        let wanted = bytes.checked_next_power_of_two().unwrap_or(bytes);
        if !self.try_acquire(wanted - held) {
            return Err(Refusal::TOO_MANY.with_message("too many large requests at once; try again later"));
        }
        match reserved {
            Some(reserved) => reserved.bytes = wanted,
            None => *reserved = Some(RequestMemoryPermit { memory: self.clone(), bytes: wanted }),
        }
        Ok(())
    }

    fn try_acquire(&self, more: usize) -> bool {
        let within = |held: usize| held.checked_add(more).filter(|held| *held <= self.max);
        self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, within).is_ok()
    }
}

impl RequestMemoryPermit {
    /// Releases memory that a complete request turned out not to need.
    pub(crate) fn shrink_to(&mut self, bytes: usize) {
        let spare = self.bytes.saturating_sub(bytes);
        self.bytes -= spare;
        self.memory.used.fetch_sub(spare, Ordering::Relaxed);
    }

    /// Takes over the permit of another request that is held for the same reason.
    pub(crate) fn merge(&mut self, mut other: Self) {
        self.bytes += std::mem::take(&mut other.bytes);
    }
}

impl Drop for RequestMemoryPermit {
    fn drop(&mut self) {
        self.memory.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: usize = 1024;

    #[test]
    fn request_memory_grows_with_the_request_and_is_released() {
        let unanswered = RequestMemory::new(1024 * KIB);
        let held = || unanswered.used.load(Ordering::Relaxed) / KIB;
        let mut request = None;
        for (bytes, expected) in [(1, 0), (64, 0), (65, 128), (128, 128), (300, 512), (512, 512)] {
            assert_eq!(unanswered.reserve(&mut request, bytes * KIB), Ok(()), "{bytes}");
            assert_eq!(held(), expected, "{bytes}");
        }
        let mut second = None;
        assert!(unanswered.reserve(&mut second, 513 * KIB).unwrap_err().is_same_kind(&Refusal::TOO_MANY));
        assert!(second.is_none());
        assert_eq!(unanswered.reserve(&mut second, 512 * KIB), Ok(()));
        assert!(unanswered.reserve(&mut None, 65 * KIB).is_err());
        assert_eq!(unanswered.reserve(&mut None, 64 * KIB), Ok(()), "small requests are always read");
        let mut request = request.unwrap();
        request.shrink_to(300 * KIB);
        assert_eq!(held(), 812);
        request.merge(second.unwrap());
        assert_eq!(held(), 812);
        drop(request);
        assert_eq!(held(), 0);
    }
}
