use std::sync::Arc;
use std::time::Instant;

use jiff::Timestamp;
use serde::Serialize;
use serde_json::value::RawValue;
use trunkline_server::protocol::codec::{Dialect, ServerResult, write_result};
use trunkline_server::protocol::{JsonWriter, Method, RawJson, Refusal, Revision, shorten};
use trunkline_server::session::Principal;
use trunkline_server::{AccessGrant, CallerIdentity, HandlerOutcome, IncomingCall, Next};

use super::credential::AuditedCredential;
use super::{ArgumentLogging, AuditLog, ItemOwnerLookup};

/// The most bytes of arguments that are written; longer ones are only counted.
const MAX_ARGUMENT_BYTES: usize = 8 * 1024;

/// One call, of which a line is written when it ends, in whatever way.
pub(super) struct AuditRecord {
    audit: AuditLog,
    started_at: Instant,
    line: AuditLine,
    item: Option<AuditedItem>,
    is_unwritten: bool,
}

/// The item that a call names. If no server has it, the name is arbitrary client text, and may be a secret in the
/// wrong place; but a server may have to be started before the owner is known.
struct AuditedItem {
    method: Method,
    name: String,
    is_tool: bool,
    principal: Principal,
    grant: Option<Arc<AccessGrant>>,
}

/// A line, in the order in which it is written.
#[derive(Debug, Serialize)]
struct AuditLine {
    time: String,
    principal: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    client: Option<String>,
    /// The client that the access token was issued to.
    #[serde(skip_serializing_if = "Option::is_none")]
    oauth_client: Option<String>,
    /// The beginning of the digest of the access token, and its scopes.
    #[serde(skip_serializing_if = "Option::is_none")]
    credential: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scopes: Option<String>,
    revision: &'static str,
    method: &'static str,
    /// The exposed name of the tool, prompt or resource.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// The owning server, and the item's name there.
    #[serde(skip_serializing_if = "Option::is_none")]
    server: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    item: Option<String>,
    outcome: &'static str,
    /// The rule that decides on it, or by which it is not there, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<String>,
    ms: u64,
    bytes_in: usize,
    bytes_out: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    trace: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments: Option<Box<RawValue>>,
}

impl AuditRecord {
    pub(super) fn begin(audit: &AuditLog, call: &IncomingCall, next: &Next) -> Self {
        let client = call.context.client();
        let arguments = call.params().get("arguments").filter(|_| audit.arguments == ArgumentLogging::Full);
        let used = call.context.with_caller(|caller| AuditedCredential::new(caller.grant.as_deref()));
        let line = AuditLine {
            time: timestamp(),
            principal: shorten(&call.context.principal().to_string()),
            client: client.map(|client| format!("{} {}", shorten(&client.name), shorten(&client.version))),
            oauth_client: used.oauth_client,
            credential: used.fingerprint,
            scopes: used.scopes,
            revision: call.context.revision().as_str(),
            method: call.method.as_str(),
            name: None,
            server: None,
            item: None,
            outcome: "cancelled",
            rule: None,
            ms: 0,
            bytes_in: call.params().members.iter().map(|(key, value)| key.len() + value.as_str().len()).sum(),
            bytes_out: 0,
            trace: call.context.trace().map(|trace| trace.trace.to_string()),
            arguments: arguments
                .filter(|raw| raw.as_str().len() <= MAX_ARGUMENT_BYTES)
                .and_then(|raw| RawValue::from_string(raw.as_str().to_owned()).ok()),
        };
        let named = AuditedItem::new(call, next);
        Self { audit: audit.clone(), started_at: Instant::now(), line, item: named, is_unwritten: true }
    }

    /// Writes how the call ended.
    pub(super) fn end(mut self, answer: &Result<HandlerOutcome, Refusal>) {
        self.line.outcome = match answer {
            Ok(HandlerOutcome::Done(reply)) => {
                self.line.bytes_out = reply_bytes(reply);
                if reply.is_tool_error() { "tool_error" } else { "ok" }
            }
            Ok(_) => "input_required",
            Err(refusal) => refusal.name(),
        };
        self.write();
    }

    fn write(&mut self) {
        self.is_unwritten = false;
        if let Some(named) = self.item.take() {
            named.write_into(self.audit.owners.as_deref(), &mut self.line);
        }
        self.line.ms = u64::try_from(self.started_at.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.audit.write_line(&self.line);
    }
}

impl Drop for AuditRecord {
    fn drop(&mut self) {
        if self.is_unwritten {
            self.write();
        }
    }
}

impl AuditedItem {
    fn new(call: &IncomingCall, next: &Next) -> Option<Self> {
        let name = call.name()?.into_owned();
        let is_tool = call.method == Method::ToolsCall && next.has_tool(&name);
        let (principal, grant) =
            call.context.with_caller(|caller| (caller.principal.clone(), caller.grant.clone()));
        Some(Self { method: call.method, name, is_tool, principal, grant })
    }

    /// Adds the name and owner of the called item to the line.
    fn write_into(self, index: Option<&dyn ItemOwnerLookup>, line: &mut AuditLine) {
        let owner = index.and_then(|index| index.owner_of(self.method, &self.name));
        if owner.is_none() && !self.is_tool {
            line.rule = index
                .filter(|_| self.method == Method::ToolsCall)
                .and_then(|index| index.denying_rule(&self.name));
            line.name = line.rule.is_some().then_some(self.name);
            return;
        }
        let caller = CallerIdentity::new(&self.principal, self.grant.as_ref());
        line.rule = index.and_then(|index| index.access_rule(caller, self.method, &self.name));
        let (server, item) = owner.unzip();
        let shown = |name: String| match self.method {
            // Where secrets are in an address, they are in its query.
            Method::ResourcesRead => shorten(name.split(['?', '#']).next().unwrap_or_default()),
            _ => name,
        };
        line.server = server;
        (line.name, line.item) = (Some(shown(self.name)), item.map(shown));
    }
}

/// Returns how many bytes a reply has.
fn reply_bytes(reply: &ServerResult) -> usize {
    match reply {
        ServerResult::Relayed(carried) => carried.raw().as_str().len(),
        ServerResult::List(list) => list.items.iter().map(|item| item.as_str().len() + 1).sum(),
        other => {
            let mut writer = JsonWriter::with_capacity(other.length_hint());
            write_result(other, Dialect::of(Revision::NEWEST), &RawJson::EMPTY_OBJECT, &mut writer);
            writer.len()
        }
    }
}

pub(super) fn timestamp() -> String {
    format!("{:.3}", Timestamp::now())
}
