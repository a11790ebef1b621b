/// A set of lists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ListSet {
    pub(crate) tools: bool,
    pub(crate) prompts: bool,
    pub(crate) resources: bool,
}

impl ListSet {
    pub(super) const ALL: Self = Self { tools: true, prompts: true, resources: true };
    pub(crate) const NONE: Self = Self { tools: false, prompts: false, resources: false };

    pub(super) fn is_empty(self) -> bool {
        self == Self::NONE
    }

    /// Reports whether a list is in the set, by its name in reports.
    pub(super) fn includes(self, what: &str) -> bool {
        match what {
            "tools" => self.tools,
            "prompts" => self.prompts,
            _ => self.resources,
        }
    }

    /// Returns the lists of either set.
    pub(crate) fn union(self, other: Self) -> Self {
        Self {
            tools: self.tools || other.tools,
            prompts: self.prompts || other.prompts,
            resources: self.resources || other.resources,
        }
    }
}
