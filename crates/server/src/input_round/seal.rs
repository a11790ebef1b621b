use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use trunkline_protocol::Method;
use trunkline_session::{Principal, ProcessId, RecordSealer, StateKeys, Timestamp};

/// The binding of a state: it is valid only with the caller, method and arguments of its call.
#[derive(Clone, Debug)]
pub(crate) struct StateBinding {
    pub(crate) principal: Principal,
    pub(crate) method: Method,
    pub(crate) params_digest: [u8; 32],
}

impl StateBinding {
    fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(96);
        let (tag, name) = match &self.principal {
            Principal::Anonymous => (b'a', ""),
            Principal::Process => (b'p', ""),
            Principal::Named(name) => (b'n', &**name),
        };
        bytes.push(tag);
        bytes.extend((name.len() as u64).to_le_bytes());
        bytes.extend(name.as_bytes());
        bytes.extend(self.params_digest);
        bytes.extend(self.method.as_str().as_bytes());
        bytes
    }
}

/// How the call continues when the state comes back.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum SealedContinuation {
    /// It is suspended under this number: in this process, or in the one that is named where several share sessions.
    Suspended(u128, Option<ProcessId>),
    /// It is rebuilt from these bytes.
    Portable(Bytes),
}

/// Encrypts continuations into text that only this server can make and decrypt.
#[derive(Debug)]
pub(crate) struct StateSealer {
    records: RecordSealer,
}

impl StateSealer {
    pub(crate) fn new(keys: &StateKeys) -> Self {
        Self { records: RecordSealer::new(keys) }
    }

    /// Replaces the keys; returns whether they differ from those before.
    pub(crate) fn replace(&self, keys: &StateKeys) -> bool {
        self.records.replace(keys)
    }

    /// Encrypts a continuation; `None` only if the operating system gives no random bytes.
    pub(crate) fn seal(
        &self,
        binding: &StateBinding,
        round: u32,
        expires: Timestamp,
        then: &SealedContinuation,
    ) -> Option<String> {
        let mut plain = Vec::with_capacity(64);
        plain.extend(expires.0.to_le_bytes());
        plain.extend(round.to_le_bytes());
        match then {
            SealedContinuation::Suspended(number, None) => {
                plain.push(0);
                plain.extend(number.to_le_bytes());
            }
            SealedContinuation::Suspended(number, Some(process)) => {
                plain.push(2);
                plain.extend(number.to_le_bytes());
                plain.extend(process.bits().to_le_bytes());
            }
            SealedContinuation::Portable(bytes) => {
                plain.push(1);
                plain.extend(bytes);
            }
        }
        let whole = self.records.seal(&binding.bytes(), &plain)?;
        Some(URL_SAFE_NO_PAD.encode(whole))
    }

    /// Decrypts a state; `None` if it was not made by this server for this binding, or has expired.
    pub(crate) fn open(
        &self,
        state: &str,
        binding: &StateBinding,
        now: Timestamp,
    ) -> Option<(u32, SealedContinuation)> {
        let whole = URL_SAFE_NO_PAD.decode(state).ok()?;
        let plain = self.records.open(&binding.bytes(), &whole)?.plain;
        let (expires, rest) = plain.split_first_chunk::<8>()?;
        let (round, rest) = rest.split_first_chunk::<4>()?;
        let (kind, rest) = rest.split_first()?;
        if Timestamp(u64::from_le_bytes(*expires)) <= now {
            return None;
        }
        let then = match kind {
            0 => SealedContinuation::Suspended(u128::from_le_bytes(rest.try_into().ok()?), None),
            2 => {
                let (number, process) = rest.split_first_chunk::<16>()?;
                let process = ProcessId::from_bits(u64::from_le_bytes(process.try_into().ok()?));
                SealedContinuation::Suspended(u128::from_le_bytes(*number), Some(process))
            }
            _ => SealedContinuation::Portable(Bytes::copy_from_slice(rest)),
        };
        Some((u32::from_le_bytes(*round), then))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn binding() -> StateBinding {
        StateBinding {
            principal: Principal::Named("ann".into()),
            method: Method::ToolsCall,
            params_digest: [7; 32],
        }
    }

    const NOW: Timestamp = Timestamp(1_000);
    const LATER: Timestamp = Timestamp(2_000);

    #[test]
    fn request_state_decrypts_only_for_its_own_request() {
        let sealer = StateSealer::new(&StateKeys::random().unwrap());
        let then = SealedContinuation::Portable(Bytes::from_static(b"where we were"));
        let state = sealer.seal(&binding(), 3, LATER, &then).unwrap();
        assert_eq!(sealer.open(&state, &binding(), NOW), Some((3, then)));
        let elsewhere = SealedContinuation::Suspended(7, Some(ProcessId::from_bits(9)));
        let sealed = sealer.seal(&binding(), 1, LATER, &elsewhere).unwrap();
        assert_eq!(sealer.open(&sealed, &binding(), NOW), Some((1, elsewhere)));
        for other in [
            StateBinding { principal: Principal::Named("bob".into()), ..binding() },
            StateBinding { principal: Principal::Anonymous, ..binding() },
            StateBinding { method: Method::PromptsGet, ..binding() },
            StateBinding { params_digest: [8; 32], ..binding() },
        ] {
            assert_eq!(sealer.open(&state, &other, NOW), None, "{other:?}");
        }
        assert_eq!(sealer.open(&state, &binding(), LATER), None, "expired");
    }

    #[test]
    fn tampered_request_state_never_decrypts() {
        let sealer = StateSealer::new(&StateKeys::random().unwrap());
        let state = sealer.seal(&binding(), 1, LATER, &SealedContinuation::Suspended(42, None)).unwrap();
        let whole = URL_SAFE_NO_PAD.decode(&state).unwrap();
        for bit in 0..whole.len() * 8 {
            let mut changed = whole.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(sealer.open(&URL_SAFE_NO_PAD.encode(changed), &binding(), NOW), None, "bit {bit}");
        }
        for tail in ["-TAMPERED", "A", "=", " "] {
            assert_eq!(sealer.open(&format!("{state}{tail}"), &binding(), NOW), None, "{tail}");
        }
        assert_eq!(sealer.open("", &binding(), NOW), None);
    }

    #[test]
    fn first_state_key_encrypts_and_all_keys_decrypt() {
        let (old, new) = (StateKeys::random().unwrap(), StateKeys::random().unwrap());
        let ring = new.clone().followed_by(&old);
        let before = StateSealer::new(&old)
            .seal(&binding(), 1, LATER, &SealedContinuation::Suspended(1, None))
            .unwrap();
        let after = StateSealer::new(&ring)
            .seal(&binding(), 1, LATER, &SealedContinuation::Suspended(2, None))
            .unwrap();
        assert!(StateSealer::new(&ring).open(&before, &binding(), NOW).is_some());
        assert!(StateSealer::new(&old).open(&after, &binding(), NOW).is_none());
        assert!(StateSealer::new(&new).open(&after, &binding(), NOW).is_some());
        // The same while it runs: the new key is added first, and the old one removed when its states have expired.
        let sealer = StateSealer::new(&old);
        assert!(sealer.replace(&ring) && !sealer.replace(&ring));
        assert!(sealer.open(&before, &binding(), NOW).is_some());
        assert!(sealer.open(&after, &binding(), NOW).is_some());
        let added = sealer.seal(&binding(), 1, LATER, &SealedContinuation::Suspended(3, None)).unwrap();
        assert!(StateSealer::new(&new).open(&added, &binding(), NOW).is_some(), "the first key encrypts");
        assert!(sealer.replace(&new));
        assert!(sealer.open(&before, &binding(), NOW).is_none());
    }
}
