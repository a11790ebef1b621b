use std::sync::Arc;

use trunkline_client::{BoxFuture, InputHandler, Origin};
use trunkline_protocol::codec::Dialect;
use trunkline_protocol::model::{Answer, ClientCapabilities, Question};
use trunkline_protocol::{Refusal, Revision};

use super::pages::Pages;
use super::roots::SessionRoots;

/// What a client can be asked, as far as it makes a difference to a server that keeps sessions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct InputSet(u8);

const FORM: u8 = 1;
const URL: u8 = 1 << 1;
const SAMPLING: u8 = 1 << 2;
const SAMPLING_TOOLS: u8 = 1 << 3;
const ROOTS: u8 = 1 << 4;

/// Adds one capability to others.
type Declare = fn(&ClientCapabilities) -> ClientCapabilities;

impl InputSet {
    /// Reads what a client declared.
    pub(crate) fn of(capabilities: &ClientCapabilities) -> Self {
        let flags = [
            (capabilities.form(), FORM),
            (capabilities.url(), URL),
            (capabilities.sampling(), SAMPLING),
            (capabilities.sampling_tools(), SAMPLING_TOOLS),
            (capabilities.roots(), ROOTS),
        ];
        Self(flags.into_iter().filter(|(declared, _)| *declared).fold(0, |set, (_, flag)| set | flag))
    }

    /// Leaves out what a server of a revision could not ask.
    pub(crate) fn usable_in(self, revision: Revision) -> Self {
        let dialect = Dialect::of(revision);
        let usable = [
            (dialect.elicitation, FORM),
            (dialect.elicitation_modes, URL),
            (dialect.sampling_tools, SAMPLING_TOOLS),
        ];
        let usable = usable.into_iter().filter(|(has_words, _)| *has_words);
        Self(self.0 & usable.fold(SAMPLING | ROOTS, |set, (_, flag)| set | flag))
    }

    /// Declares it.
    pub(crate) fn capabilities(self) -> ClientCapabilities {
        let mut capabilities = ClientCapabilities::default();
        let declare: [(u8, Declare); 5] = [
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

    /// Reports whether anything but roots can be asked. Roots are those of a whole connection, so that it does not matter
    /// within which of its calls they are asked for.
    pub(crate) fn asks_users(self) -> bool {
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

    /// Writes the set as a number, for the file of listings.
    pub(crate) fn bits(self) -> u8 {
        self.0
    }

    /// Reads a set back; bits that mean nothing here are dropped.
    pub(crate) fn from_bits(bits: u8) -> Self {
        Self(bits & (FORM | URL | SAMPLING | SAMPLING_TOOLS | ROOTS))
    }

    /// Returns every set that can be made of this one.
    #[cfg(test)]
    pub(crate) fn subsets(self) -> Vec<Self> {
        (0..=self.0).map(Self).filter(|set| self.covers(*set)).collect()
    }
}

/// Answers what a server asks outside of any call that could be asked: as far as it is known, and else not at all.
pub(super) struct SessionInput {
    pub(super) capabilities: ClientCapabilities,
    pub(super) roots: Arc<SessionRoots>,
    pub(super) pages: Arc<Pages>,
}

impl InputHandler for SessionInput {
    fn capabilities(&self) -> ClientCapabilities {
        self.capabilities.clone()
    }

    fn answer(&self, _: Origin, question: Question) -> BoxFuture<'_, Result<Answer, Refusal>> {
        match question {
            Question::Roots => Box::pin(async { Ok(Answer::Roots(self.roots.answer().await)) }),
            // Nobody can be shown the question, which is what it means that a user did not decide.
            Question::Form(_) | Question::Url(_) => Box::pin(std::future::ready(Ok(Answer::cancel()))),
            Question::Sample(_) => {
                let refusal = Refusal::application(-1, "no interactive client for this request");
                Box::pin(std::future::ready(Err(refusal)))
            }
        }
    }

    fn page_done(&self, elicitation_id: &str) {
        self.pages.done(elicitation_id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_only_told_what_it_could_use() {
        let declared =
            ClientCapabilities::default().with_form().with_url().with_sampling_tools().with_roots();
        let all = InputSet::of(&declared);
        assert_eq!(InputSet::of(&all.capabilities()), all);
        for (revision, expected) in [
            (Revision::V2024_11_05, SAMPLING | ROOTS),
            (Revision::V2025_03_26, SAMPLING | ROOTS),
            (Revision::V2025_06_18, FORM | SAMPLING | ROOTS),
            (Revision::V2025_11_25, FORM | URL | SAMPLING | SAMPLING_TOOLS | ROOTS),
        ] {
            assert_eq!(all.usable_in(revision), InputSet(expected), "{revision}");
        }
        // Who can only open pages cannot be asked by a server that knows only forms.
        let page = InputSet::of(&ClientCapabilities::default().with_url());
        assert_eq!(page.usable_in(Revision::V2025_06_18), InputSet::default());
        assert!(all.covers(InputSet(FORM)) && !InputSet(FORM).covers(all));
    }

    #[test]
    fn what_a_server_could_use_is_what_it_reads_of_what_it_is_told() {
        for set in 0..1 << 5 {
            // Tools are a part of sampling.
            let set = InputSet::of(&InputSet(set).capabilities());
            for revision in Revision::ALL {
                let told = set.capabilities().for_revision(revision);
                let read = ClientCapabilities::read(&told, revision).unwrap();
                assert_eq!(set.usable_in(revision), InputSet::of(&read), "{set:?} {revision}");
            }
        }
    }
}
