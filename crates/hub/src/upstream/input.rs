use std::sync::Arc;

use trunkline_client::{BoxFuture, InputHandler, InputOrigin};
use trunkline_protocol::codec::Dialect;
use trunkline_protocol::model::{ClientCapabilities, InputRequest, InputResponse};
use trunkline_protocol::{Refusal, Revision};
use trunkline_server::UpstreamItem;

use super::roots::UpstreamRoots;
use super::url_elicitations::UrlElicitations;

/// The input capabilities of a client, as far as they matter to a stateful server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct InputSet(u8);

const FORM: u8 = 1;
const URL: u8 = 1 << 1;
const SAMPLING: u8 = 1 << 2;
const SAMPLING_TOOLS: u8 = 1 << 3;
const ROOTS: u8 = 1 << 4;

/// Adds one capability to others.
type DeclareFn = fn(&ClientCapabilities) -> ClientCapabilities;

impl InputSet {
    /// Reads the capabilities that a client declared.
    pub(crate) fn from_capabilities(capabilities: &ClientCapabilities) -> Self {
        let flags = [
            (capabilities.form(), FORM),
            (capabilities.url(), URL),
            (capabilities.sampling(), SAMPLING),
            (capabilities.sampling_tools(), SAMPLING_TOOLS),
            (capabilities.roots(), ROOTS),
        ];
        Self(flags.into_iter().filter(|(declared, _)| *declared).fold(0, |set, (_, flag)| set | flag))
    }

    /// Returns the capabilities that exist in a revision.
    pub(crate) fn usable_in(self, revision: Revision) -> Self {
        let dialect = Dialect::of(revision);
        let usable = [
            (dialect.elicitation, FORM),
            (dialect.elicitation_modes, URL),
            (dialect.sampling_tools, SAMPLING_TOOLS),
        ];
        let usable = usable.into_iter().filter(|(is_in_revision, _)| *is_in_revision);
        Self(self.0 & usable.fold(SAMPLING | ROOTS, |set, (_, flag)| set | flag))
    }

    /// Returns the set as client capabilities.
    pub(crate) fn capabilities(self) -> ClientCapabilities {
        let mut capabilities = ClientCapabilities::default();
        let declare: [(u8, DeclareFn); 5] = [
            (FORM, ClientCapabilities::with_form),
            (URL, ClientCapabilities::with_url),
            (SAMPLING, ClientCapabilities::with_sampling),
            (SAMPLING_TOOLS, ClientCapabilities::with_sampling_tools),
            (ROOTS, ClientCapabilities::with_roots),
        ];
        for (flag, declare) in declare {
            if self.0 & flag != 0 {
                capabilities = declare(&capabilities);
            }
        }
        capabilities
    }

    /// Reports whether the set has more than roots. Roots belong to a whole connection, so that it does not matter in
    /// which of its calls they are requested.
    pub(crate) fn has_user_input(self) -> bool {
        self.0 & !ROOTS != 0
    }

    pub(crate) fn has_roots(self) -> bool {
        self.0 & ROOTS != 0
    }

    /// Reports whether everything in another set is in this one too.
    pub(crate) fn covers(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns how many capabilities are in both sets.
    pub(crate) fn shared_with(self, other: Self) -> u32 {
        (self.0 & other.0).count_ones()
    }

    /// Returns the set as bits, for the listing file.
    pub(crate) fn bits(self) -> u8 {
        self.0
    }

    /// Reads a set back; bits that mean nothing here are dropped.
    pub(crate) fn from_bits(bits: u8) -> Self {
        Self(bits & (FORM | URL | SAMPLING | SAMPLING_TOOLS | ROOTS))
    }

    /// Returns every subset.
    #[cfg(test)]
    pub(crate) fn subsets(self) -> Vec<Self> {
        (0..=self.0).map(Self).filter(|set| self.covers(*set)).collect()
    }
}

/// Answers input requests that a server sends outside of any call: roots if they are known, and a cancellation or
/// refusal for the others.
pub(super) struct SessionInputHandler {
    pub(super) capabilities: ClientCapabilities,
    pub(super) roots: Arc<UpstreamRoots>,
    pub(super) url_elicitations: Arc<UrlElicitations>,
}

impl InputHandler for SessionInputHandler {
    fn capabilities(&self) -> ClientCapabilities {
        self.capabilities.clone()
    }

    fn answer(
        &self,
        _: InputOrigin,
        question: InputRequest,
    ) -> BoxFuture<'_, Result<InputResponse, Refusal>> {
        match question {
            InputRequest::Roots => Box::pin(async { Ok(InputResponse::Roots(self.roots.answer().await)) }),
            // No user can see the request, and `cancel` is the response for a user that has made no choice.
            InputRequest::Form(_) | InputRequest::Url(_) => {
                UpstreamItem::RequestDeclined.count(1);
                Box::pin(std::future::ready(Ok(InputResponse::cancel())))
            }
            InputRequest::Sampling(_) => {
                UpstreamItem::RequestDeclined.count(1);
                let refusal = Refusal::application(-1, "no interactive client for this request");
                Box::pin(std::future::ready(Err(refusal)))
            }
        }
    }

    fn elicitation_complete(&self, elicitation_id: &str) {
        self.url_elicitations.complete(elicitation_id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn input_set_is_limited_to_capabilities_of_the_revision() {
        let declared =
            ClientCapabilities::default().with_form().with_url().with_sampling_tools().with_roots();
        let all = InputSet::from_capabilities(&declared);
        assert_eq!(InputSet::from_capabilities(&all.capabilities()), all);
        for (revision, expected) in [
            (Revision::V2024_11_05, SAMPLING | ROOTS),
            (Revision::V2025_03_26, SAMPLING | ROOTS),
            (Revision::V2025_06_18, FORM | SAMPLING | ROOTS),
            (Revision::V2025_11_25, FORM | URL | SAMPLING | SAMPLING_TOOLS | ROOTS),
        ] {
            assert_eq!(all.usable_in(revision), InputSet(expected), "{revision}");
        }
        // A client with only URL elicitation gets no elicitation from a server that has only forms.
        let url_only = InputSet::from_capabilities(&ClientCapabilities::default().with_url());
        assert_eq!(url_only.usable_in(Revision::V2025_06_18), InputSet::default());
        assert!(all.covers(InputSet(FORM)) && !InputSet(FORM).covers(all));
    }

    #[test]
    fn usable_input_set_equals_the_capabilities_read_back_per_revision() {
        for set in 0..1 << 5 {
            // Tools are a part of sampling.
            let set = InputSet::from_capabilities(&InputSet(set).capabilities());
            for revision in Revision::ALL {
                let declared = set.capabilities().for_revision(revision);
                let read = ClientCapabilities::read(&declared, revision).unwrap();
                assert_eq!(set.usable_in(revision), InputSet::from_capabilities(&read), "{set:?} {revision}");
            }
        }
    }
}
