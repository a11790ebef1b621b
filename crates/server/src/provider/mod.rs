//! Providers: tools, prompts and resources that are known only at run time.
//!
//! A provider lists what it has at one moment and answers for it. The server takes the list over into its registry, so
//! that what comes from a provider is listed, paged, checked and counted like the server's own parts; when the provider
//! says that its list has changed, the server takes it over anew.
//!
//! # Invariants
//!
//! - An item of a provider never replaces one of the server or of another provider; the duplicate is reported:
//!   `names_that_two_sources_have_are_reported_with_both`.
//! - A change of a provider is listed again, and its subscribers are notified:
//!   `a_provider_that_changes_is_listed_anew_and_whoever_watches_is_told`.

mod notifier;
mod prompts;
mod resources;
mod source;
#[cfg(test)]
mod tests;
mod tools;

pub use self::notifier::ChangeNotifier;
pub use self::prompts::PromptProvider;
pub(crate) use self::prompts::PromptSource;
pub use self::resources::ResourceProvider;
pub(crate) use self::resources::ResourceSource;
pub(crate) use self::source::PartSource;
pub(crate) use self::tools::ToolSource;
pub use self::tools::{PrefixedProvider, ToolProvider};
