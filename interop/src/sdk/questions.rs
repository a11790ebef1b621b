//! The input requests of our own servers, the same in both eras.

use serde_json::json;
use trunkline_client::protocol::Method;
use trunkline_client::protocol::model::{ElicitAction, InputRequest};
use trunkline_client::{ClientCall, InputOrigin, StepOutcome};

use crate::answers::{Answers, MODEL_SAYS};
use crate::options::Options;
use crate::peer::Peer;
use crate::report::{Checked, has, require, same};

const ROOT: &str = "file:///interop/root";

pub(super) fn prepare(_: &Options, answers: &Answers) -> Checked {
    answers.have_roots([ROOT.to_owned()]);
    Ok(())
}

/// Calls a tool that requests input, and returns its text and the input requests.
async fn ask(
    peer: &Peer<'_>,
    tool: &str,
    action: ElicitAction,
) -> Checked<(String, Vec<(InputOrigin, InputRequest)>)> {
    peer.answers.asked().take();
    peer.answers.will(action);
    let said = peer.tell(tool, json!({ "question": "How much?" })).await;
    peer.answers.will(ElicitAction::Accept);
    Ok((said?, peer.answers.asked().take()))
}

/// An input request of a call has its tool as its origin.
fn came_with(origin: &InputOrigin, tool: &str) -> Checked {
    same(origin, &InputOrigin::Call { method: Method::ToolsCall, name: Some(tool.to_owned()) })
}

pub(super) async fn form_accept(peer: &Peer<'_>) -> Checked {
    let (said, asked) = ask(peer, "ask_name", ElicitAction::Accept).await?;
    same(said.as_str(), "accept age=7 colour=red name=ada news=true")?;
    let [(origin, InputRequest::Form(form))] = &*asked else { return Err(format!("{asked:?}").into()) };
    came_with(origin, "ask_name")?;
    same(form.message.as_str(), "Who are you?")?;
    has(form.schema.as_str(), r#""colour""#)
}

pub(super) async fn form_decline(peer: &Peer<'_>) -> Checked {
    same(ask(peer, "ask_name", ElicitAction::Decline).await?.0.as_str(), "decline")
}

pub(super) async fn form_cancel(peer: &Peer<'_>) -> Checked {
    same(ask(peer, "ask_name", ElicitAction::Cancel).await?.0.as_str(), "cancel")
}

pub(super) async fn page(peer: &Peer<'_>) -> Checked {
    for (action, expected) in [(ElicitAction::Accept, "accept"), (ElicitAction::Decline, "decline")] {
        let (said, asked) = ask(peer, "ask_page", action).await?;
        same(said.as_str(), expected)?;
        let [(_, InputRequest::Url(page))] = &*asked else { return Err(format!("{asked:?}").into()) };
        same(page.url.as_str(), "https://example.com/login")?;
        same(page.message.as_str(), "Please log in.")?;
    }
    Ok(())
}

pub(super) async fn one_after_the_other(peer: &Peer<'_>) -> Checked {
    let (said, asked) = ask(peer, "ask_twice", ElicitAction::Accept).await?;
    same(said.as_str(), "ada is 7")?;
    let [(_, InputRequest::Form(_)), (_, InputRequest::Form(second))] = &*asked else {
        return Err(format!("{asked:?}").into());
    };
    same(second.message.as_str(), "How old is ada?")
}

pub(super) async fn model(peer: &Peer<'_>) -> Checked {
    let (said, asked) = ask(peer, "ask_model", ElicitAction::Accept).await?;
    same(said.as_str(), format!("oracle says {MODEL_SAYS}"))?;
    let [(_, InputRequest::Sampling(sample))] = &*asked else { return Err(format!("{asked:?}").into()) };
    has(sample.params.get("messages").ok_or("no messages")?.as_str(), "How much?")?;
    same(sample.params.text("systemPrompt").as_deref(), Some("Be brief."))
}

pub(super) async fn roots(peer: &Peer<'_>) -> Checked {
    let (said, asked) = ask(peer, "ask_roots", ElicitAction::Accept).await?;
    same(said.as_str(), ROOT)?;
    // A session may have got the request before.
    let is_asked = matches!(&*asked, [(_, InputRequest::Roots)]) || (asked.is_empty() && !peer.is_modern());
    require(is_asked, format_args!("{asked:?}"))
}

/// A program can answer by itself, step by step.
pub(super) async fn by_steps(peer: &Peer<'_>) -> Checked {
    let step = peer.client.step(ClientCall::tool("ask_name", json!({}))).await?;
    let StepOutcome::InputRequired(round) = step else {
        return Err(format!("nothing was asked: {step:?}").into());
    };
    let answer = |(key, question): &(String, InputRequest)| (key.clone(), Ok(peer.answers.reply(question)));
    let answers: Vec<_> = round.requests.iter().map(answer).collect();
    same(answers.len(), 1)?;
    match round.respond(answers).await? {
        StepOutcome::Done(result) => has(result.as_str(), "accept age=7 colour=red"),
        other => Err(format!("{other:?}").into()),
    }
}
