//! The state that a caller holds while it answers input requests.

use bytes::Bytes;
use trunkline_config::ServerName;
use trunkline_protocol::{Era, Refusal};
use trunkline_server::IncomingCall;

use crate::limits::HubLimits;

/// Whether a call is new, or resumes after an input round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ResumeState {
    Fresh,
    /// Resumes with the server's state. The rounds are counted, because a server could request input for ever from a
    /// caller that always complies.
    Resumed {
        rounds: u16,
        polls: u16,
        /// The era of the connection on which the state was created; the state is valid only there.
        era: Era,
        /// Boxed, since few calls have it.
        state: Box<Bytes>,
    },
}

impl ResumeState {
    /// Reads the state of a resumed call. It was sealed by the hub, so that its content is authentic; but the server
    /// that it is for may have been replaced.
    ///
    /// # Errors
    /// [`Refusal::STALE_STATE`] if it is for another server.
    pub(super) fn from_call(call: &IncomingCall, server: &ServerName) -> Result<Self, Refusal> {
        match &call.continuation {
            None => Ok(Self::Fresh),
            Some(bytes) => Self::decode(bytes, server).ok_or(Refusal::STALE_STATE),
        }
    }

    fn decode(bytes: &Bytes, server: &ServerName) -> Option<Self> {
        let (era, rest) = bytes.split_first()?;
        let era = Era::ALL.get(usize::from(*era)).copied()?;
        let (rounds, rest) = rest.split_first_chunk::<2>()?;
        let (polls, rest) = rest.split_first_chunk::<2>()?;
        let (length, rest) = rest.split_first_chunk::<2>()?;
        let (name, state) = rest.split_at_checked(u16::from_le_bytes(*length).into())?;
        (name == server.as_str().as_bytes()).then(|| Self::Resumed {
            rounds: u16::from_le_bytes(*rounds),
            polls: u16::from_le_bytes(*polls),
            era,
            state: Box::new(bytes.slice_ref(state)),
        })
    }

    /// Returns the state for the next round.
    ///
    /// # Errors
    /// There were too many rounds.
    pub(super) fn next_round(
        &self,
        state: Bytes,
        era: Era,
        is_poll: bool,
        limits: &HubLimits,
    ) -> Result<Self, Refusal> {
        let (rounds, polls) = match self {
            Self::Fresh => (0, 0),
            Self::Resumed { rounds, polls, .. } => (*rounds, *polls),
        };
        let (rounds, polls) = if is_poll { (rounds, polls + 1) } else { (rounds + 1, polls) };
        if rounds > limits.input_rounds || polls > limits.poll_rounds {
            return Err(Refusal::INTERNAL
                .with_message(format!("the server asked more than {} times", limits.input_rounds)));
        }
        Ok(Self::Resumed { rounds, polls, era, state: Box::new(state) })
    }

    pub(super) fn to_bytes(&self, server: &ServerName) -> Bytes {
        let Self::Resumed { rounds, polls, era, state } = self else { return Bytes::new() };
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

    /// Returns the era in which the call began, if it is resumed.
    pub(super) fn era(&self) -> Option<Era> {
        match self {
            Self::Fresh => None,
            Self::Resumed { era, .. } => Some(*era),
        }
    }

    pub(super) fn is_resumed(&self) -> bool {
        matches!(self, Self::Resumed { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> ServerName {
        ServerName::parse(text).unwrap()
    }

    #[test]
    fn resume_state_is_decoded_only_for_its_own_server() {
        let limits = HubLimits::default();
        let first = ResumeState::Fresh
            .next_round(Bytes::from_static(b"\"state\""), Era::Modern, false, &limits)
            .unwrap();
        let second = first.next_round(Bytes::new(), Era::Legacy, true, &limits).unwrap();
        assert_eq!((first.era(), second.era()), (Some(Era::Modern), Some(Era::Legacy)));
        for resume in [first, second] {
            let bytes = resume.to_bytes(&name("ä b"));
            assert_eq!(ResumeState::decode(&bytes, &name("ä b")), Some(resume));
            assert_eq!(ResumeState::decode(&bytes, &name("a")), None);
            for cut in 0..bytes.len().min(7) {
                assert_eq!(ResumeState::decode(&bytes.slice(..cut), &name("ä b")), None, "{cut}");
            }
        }
    }

    #[test]
    fn input_rounds_and_polls_of_a_call_are_bounded() {
        let limits = HubLimits { input_rounds: 2, poll_rounds: 3, ..HubLimits::default() };
        for (is_poll, most) in [(false, 2), (true, 3)] {
            let mut resume = ResumeState::Fresh;
            for _ in 0..most {
                resume = resume.next_round(Bytes::new(), Era::Modern, is_poll, &limits).unwrap();
            }
            assert!(resume.next_round(Bytes::new(), Era::Modern, is_poll, &limits).is_err());
        }
    }
}
