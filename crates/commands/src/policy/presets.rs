/// The commands that golem's server hides: the eight patterns of its description, and eight of the same kind.
pub(super) const GOLEM_PATTERNS: [&str; 16] = [
    "profile *",
    "cloud token *",
    "cloud account grant *",
    "cloud project grant *",
    "cloud project policy *",
    "account get",
    "account add",
    "grant *",
    "account update",
    "account delete",
    "token *",
    "cloud profile *",
    "cloud account add",
    "cloud account update",
    "cloud account delete",
    "cloud certificate *",
];
