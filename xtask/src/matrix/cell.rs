/// What came of a feature between two peers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FeatureCell {
    /// It works as it does without a bridge.
    Pass,
    /// The sentence for what the two cannot express.
    Cannot(String),
}

impl FeatureCell {
    /// Reads a cell; one that failed is none.
    pub(super) fn read(text: &str) -> Option<Self> {
        match text {
            "" | "FAIL" => None,
            "pass" => Some(Self::Pass),
            sentence => Some(Self::Cannot(sentence.to_owned())),
        }
    }
}
