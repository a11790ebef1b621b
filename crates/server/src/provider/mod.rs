//! Providers: tools, prompts and resources that are known only at run time.
//!
//! A provider lists its current parts and answers their calls. The server copies the list into its registry, so that
//! a provider's parts are listed, paged, checked and counted like the server's own; when the provider reports that
//! its list has changed, the server copies it again.
//!
//! # Invariants
//!
//! - An item of a provider never replaces one of the server or of another provider; the duplicate is reported:
//!   `duplicate_names_are_reported_with_both_sources`.
//! - A change of a provider is listed again, and its subscribers are notified:
//!   `changed_provider_list_is_refreshed_and_subscribers_are_notified`.

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
