//! Requests a caller to log in to the server that its call is for.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;
use trunkline_protocol::codec::ServerResult;
use trunkline_protocol::model::{CallToolResult, Content, ElicitAction, InputRequest, InputResponse};
use trunkline_protocol::{Method, Refusal, Revision};
use trunkline_server::{AskError, Context, HandlerOutcome, IncomingCall, TypedInputRequest};

use super::translate::{login_refusal, url_required_refusal};
use crate::login::LoginProgress;
use crate::upstream::Upstream;

/// How often one call requests a login: a server may demand more scopes after the first.
pub(super) const MAX_LOGINS: usize = 3;

/// What came of asking for a login.
pub(super) enum LoginAnswer {
    LoggedIn,
    /// The user has to read this, and then to repeat the call.
    Explained(String),
    /// The client has to send its user to the page, and then to repeat the call.
    Required(Refusal),
}

/// How long a call waits for a login after its user was sent to the page. Clients time calls out, most of them after a
/// minute; one with an error for it (2025-11-25) gets that before, and repeats the call.
const LOGIN_WAIT: Duration = Duration::from_secs(45);

/// Sends the caller's user to the connect page, in the way that its client supports, and waits for the login.
pub(super) async fn ask_login(server: &Arc<Upstream>, context: &Context, round: usize) -> LoginAnswer {
    let name = server.name();
    // The user may have logged in with another program that shares the store.
    if server.reload_tokens().await {
        return LoginAnswer::LoggedIn;
    }
    let Some((link, url)) = server.connect_link(&context.principal()).await else {
        return LoginAnswer::Explained(format!(
            "Server `{name}` requires a login, and this hub has no page for it. Ask its operator."
        ));
    };
    let by_hand =
        format!("Server `{name}` requires a login. Open this link in a browser, and then try again: {url}");
    // A revision without a way to ask, or a client that has not declared it, gets the link as text.
    let key = format!("trunkline-login-{round}");
    let question = InputRequest::url(format!("Log in to `{name}` to continue."), &url);
    let asked = context.ask(TypedInputRequest::relayed(key.clone(), question)).await;
    let action = match asked {
        Ok(InputResponse::Elicit(answer)) => answer.action,
        Err(AskError::Unsupported { .. }) if has_url_error(context) => {
            return LoginAnswer::Required(url_required_refusal(name, &url, link.elicitation_id()));
        }
        Err(AskError::Unsupported { .. }) => return LoginAnswer::Explained(by_hand),
        Ok(_) | Err(_) => ElicitAction::Cancel,
    };
    if action != ElicitAction::Accept {
        return LoginAnswer::Explained(format!("The login to server `{name}` was declined. {by_hand}"));
    }
    let progress = match context.elicitation_completer(&key) {
        Some(completer) => match timeout(LOGIN_WAIT, link.finished()).await {
            Ok(progress) => {
                completer.notify();
                progress
            }
            Err(_) => {
                let refusal = url_required_refusal(name, &url, completer.id());
                tokio::spawn(async move {
                    link.finished().await;
                    completer.notify();
                });
                return LoginAnswer::Required(refusal);
            }
        },
        None => link.finished().await,
    };
    match progress {
        LoginProgress::Done => LoginAnswer::LoggedIn,
        LoginProgress::Failed(_) | LoginProgress::Waiting => LoginAnswer::Explained(format!(
            "The login to server `{name}` failed; the page has the reason. Try again."
        )),
    }
}

/// Reports whether the caller's client knows the error that requires a URL elicitation, and opens such URLs. Only
/// revision 2025-11-25 has that error.
fn has_url_error(context: &Context) -> bool {
    context.revision() == Revision::V2025_11_25 && context.with_caller(|caller| caller.capabilities().url())
}

/// Answers a call with what its user has to do: as a tool result, which the model can read, or as an error.
pub(super) fn explained(server: &Upstream, text: String, method: Method) -> Result<HandlerOutcome, Refusal> {
    match method {
        Method::ToolsCall => Ok(HandlerOutcome::Done(ServerResult::Tool(CallToolResult::error(text)))),
        _ => Err(login_refusal(server.name(), &text)),
    }
}

/// Requests the user of a call to log in to a server, and returns the answer to the call if there was no login.
pub(crate) async fn require_login(
    server: &Arc<Upstream>,
    call: &IncomingCall,
) -> Option<Result<HandlerOutcome, Refusal>> {
    match ask_login(server, &call.context, 0).await {
        LoginAnswer::LoggedIn => None,
        LoginAnswer::Explained(text) => Some(explained(server, text, call.method)),
        LoginAnswer::Required(refusal) => Some(Err(refusal)),
    }
}

/// Answers a call of the tool by which a user logs in.
pub(crate) async fn call_login_tool(
    server: Arc<Upstream>,
    call: IncomingCall,
) -> Result<HandlerOutcome, Refusal> {
    let name = server.name();
    let text = match server.demands_login() {
        true => match ask_login(&server, &call.context, 0).await {
            LoginAnswer::LoggedIn => format!("Logged in to server `{name}`. Its tools are listed now."),
            LoginAnswer::Explained(text) => text,
            LoginAnswer::Required(refusal) => return Err(refusal),
        },
        false => format!("Server `{name}` needs no login now."),
    };
    let result = CallToolResult { content: vec![Content::text(text)], ..CallToolResult::default() };
    Ok(HandlerOutcome::Done(ServerResult::Tool(result)))
}
