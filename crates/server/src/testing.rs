//! Calls made by hand, and their answers as a client would read them.

use std::sync::Arc;

use futures_util::FutureExt as _;
use serde_json::Value;
use trunkline_protocol::codec::{Dialect, write_result};
use trunkline_protocol::{JsonWriter, Method, Params, RawJson, Refusal, Revision};
use trunkline_session::{Principal, SessionId, SessionRecord, StateKeys};

use crate::call::{
    CallScope, CallState, Caller, Context, Handler, HandlerOutcome, IncomingCall, SessionState,
};
use crate::edge::legacy::LiveSession;
use crate::env::Env;
use crate::host::HostOptions;

use crate::server::{Server, ServerHandle};
use crate::server_core::{ServerCore, now};

pub(crate) fn caller(revision: Revision, capabilities: &Value) -> Caller {
    Caller {
        principal: Principal::Anonymous,
        revision,
        capabilities: capabilities.into(),
        client: None,
        request_id: None,
        session: None,
        connection: None,
        remote_address: None,
        transport: "channel",
        state_id: None,
        log_level: None,
        progress_token: None,
        env: Env::NONE,
        grant: None,
    }
}

/// Makes a call of a client that supports every input request.
pub(crate) fn call(revision: Revision, method: Method, params: &Value) -> IncomingCall {
    let capabilities = serde_json::json!({ "elicitation": { "form": {} }, "sampling": {}, "roots": {} });
    call_from(caller(revision, &capabilities), method, params)
}

pub(crate) fn call_from(caller: Caller, method: Method, params: &Value) -> IncomingCall {
    let members = RawJson::from(params).members().unwrap();
    let scope = CallScope::Sessionless(Arc::default());
    let params = Params { members, meta: None };
    let shared = CallState::new(method, params, caller, Vec::new(), scope);
    IncomingCall { method, continuation: None, context: Context::new(shared) }
}

/// Makes a core that serves a server.
pub(crate) fn core(server: &Server) -> Arc<ServerCore> {
    let handler = Arc::new(server.handle().unwrap());
    ServerCore::new(handler, &StateKeys::random().unwrap(), HostOptions::default())
}

/// Makes a legacy session of a client that supports no input requests.
pub(crate) fn session(core: &ServerCore, revision: Revision) -> Arc<LiveSession> {
    let record = SessionRecord {
        id: SessionId::random(),
        principal: Principal::Anonymous,
        revision,
        capabilities: RawJson::EMPTY_OBJECT,
        client: None,
        log_level: None,
        subscriptions: std::collections::BTreeSet::new(),
        created: now(),
    };
    let state = SessionState::new(core, &record, Env::NONE, None);
    Arc::new(LiveSession::new(record, state, now()))
}

/// Answers a call with a handler that never waits, and returns the result as it is written, without the common
/// members.
pub(crate) fn answer_in(
    server: &ServerHandle,
    revision: Revision,
    method: Method,
    params: &Value,
) -> Result<Value, Refusal> {
    let future = Handler::call(server, call(revision, method, params));
    let HandlerOutcome::Done(reply) = future.now_or_never().expect("the handler waits")? else {
        panic!("the handler asks");
    };
    let mut writer = JsonWriter::default();
    write_result(&reply, Dialect::of(revision), &RawJson::EMPTY_OBJECT, &mut writer);
    let mut result: Value = writer.into_raw().decode().unwrap();
    for added in ["_meta", "resultType"] {
        result.as_object_mut().unwrap().remove(added);
    }
    Ok(result)
}

pub(crate) fn answer(server: &Server, method: Method, params: &Value) -> Result<Value, Refusal> {
    answer_in(&server.handle().unwrap(), Revision::NEWEST, method, params)
}

/// Calls a tool and returns the text of its result, after a `!` if the result is an error.
pub(crate) fn call_text(server: &Server, tool: &str, arguments: &Value) -> String {
    let result = server.call(tool, arguments).now_or_never().expect("the handler waits").unwrap();
    let mark = if result.is_error { "!" } else { "" };
    format!("{mark}{}", result.content.first().and_then(|block| block.as_text()).unwrap_or_default())
}

/// Asserts that a refusal is of a row of the table, and that its message contains a text.
#[track_caller]
pub(crate) fn assert_refused<T: std::fmt::Debug>(outcome: Result<T, Refusal>, row: &Refusal, message: &str) {
    let refusal = outcome.unwrap_err();
    assert!(refusal.is_same_kind(row) && refusal.message().contains(message), "{refusal:?}");
}

/// The directory of one test, removed when the test is over.
pub(crate) struct TestFolder(std::path::PathBuf);

impl TestFolder {
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("trunkline-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path.canonicalize().unwrap())
    }

    pub(crate) fn path(&self) -> &std::path::Path {
        &self.0
    }
}

impl Drop for TestFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
