//! The client's authorization flow as one state machine.
//!
//! [`AuthorizationFlow`] does no IO. Its driver performs the [`FlowAction`] that [`AuthorizationFlow::next`] returns, and
//! reports the result:
//!
//! | action | reported by |
//! |---|---|
//! | [`FlowAction::Fetch`] | [`AuthorizationFlow::on_response`] or [`AuthorizationFlow::on_fetch_failed`] |
//! | [`FlowAction::OpenPage`] | [`AuthorizationFlow::on_callback`] |
//! | [`FlowAction::NeedAssertion`] | [`AuthorizationFlow::on_assertion`] |
//! | [`FlowAction::Done`] | nothing: the flow is over |
//!
//! The steps are those of the MCP authorization specification: protected resource metadata, authorization server
//! metadata, registration, authorization by the user, token. A server without protected resource metadata is treated as
//! its own authorization server, as in revision 2025-03-26.
//!
//! ```
//! use trunkline_auth::challenge::ChallengeList;
//! use trunkline_auth::flow::{AuthorizationFlow, FlowAction, FlowConfig, FlowTrigger};
//! use trunkline_auth::pkce::FlowRandom;
//!
//! let config = FlowConfig::new("https://mcp.example/mcp", "http://127.0.0.1:3000/callback");
//! let challenges = ChallengeList::parse(r#"Bearer scope="mcp:use""#);
//! // A driver draws from the random source of the system.
//! let random = FlowRandom::draw(|bytes| bytes.fill(7));
//! let flow = AuthorizationFlow::new(config, FlowTrigger::Challenged(challenges), random)?;
//! let FlowAction::Fetch(fetch) = flow.next()? else { panic!("the flow begins with a request") };
//! let url = "https://mcp.example/.well-known/oauth-protected-resource/mcp";
//! assert_eq!(fetch.request.uri(), url);
//! # Ok::<(), trunkline_auth::flow::FlowError>(())
//! ```

mod action;
mod config;
mod error;
mod machine;
mod metadata_steps;
mod search;
mod token_steps;

pub use self::action::{AssertionRequest, FetchPurpose, FlowAction, FlowFetch, FlowOutcome, ProofRequest};
pub use self::config::{DpopPolicy, EnterpriseSetup, FlowConfig, FlowGrant, FlowTrigger};
pub use self::error::{FlowError, FlowFailure, FlowStep, MetadataAttempt};
pub use self::machine::{AuthorizationFlow, FlowDiscovery};
pub use self::search::MAX_ISSUERS;
