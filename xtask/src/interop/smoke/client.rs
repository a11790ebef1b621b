//! A third-party client that carries out orders.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};

use super::super::lock;
use crate::TaskResult;
use crate::run::BackgroundProcess;

/// An order that is not answered by then never will be.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(90);

/// What came of a call.
#[derive(Debug)]
pub(crate) enum CallAnswer {
    Text(String),
    /// The tool, or the hub before it, reports what is wrong.
    Refused(String),
}

/// One connected client; it may run several commands at once.
pub(crate) struct ControlledClient {
    pub(in super::super) name: &'static str,
    commands: Mutex<CommandPipe>,
    waiting: PendingReplies,
    _running: BackgroundProcess,
}

struct CommandPipe {
    pipe: ChildStdin,
    last: u64,
}

/// The waiters for the answers to orders; empty once the client is gone.
type PendingReplies = Arc<Mutex<Option<HashMap<u64, Sender<Value>>>>>;

impl ControlledClient {
    /// Starts a client and waits until it is connected.
    pub(in super::super) fn start(name: &'static str, command: &mut Command) -> TaskResult<Self> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut running = BackgroundProcess::start(command)?;
        let (Some(pipe), Some(output)) = running.pipes() else { return Err("a client without pipes".into()) };
        let waiting: PendingReplies = Arc::new(Mutex::new(Some(HashMap::new())));
        let (connected, is_connected) = channel();
        let answered = waiting.clone();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                // The scripts print other lines for human readers.
                let Ok(said) = serde_json::from_str::<Value>(&line) else { continue };
                if said.get("connected").is_some() {
                    let _ = connected.send(());
                } else if let Some(id) = said["id"].as_u64() {
                    let waiter = lock(&answered).as_mut().and_then(|waiting| waiting.remove(&id));
                    let _ = waiter.map(|waiter| waiter.send(said));
                }
            }
            *lock(&answered) = None;
        });
        let begun = is_connected.recv_timeout(COMMAND_TIMEOUT);
        begun.map_err(|_| format!("{name} did not connect"))?;
        Ok(Self { name, commands: Mutex::new(CommandPipe { pipe, last: 0 }), waiting, _running: running })
    }

    /// Reports whether the client has ended by itself.
    pub(crate) fn has_ended(&self) -> bool {
        lock(&self.waiting).is_none()
    }

    /// Returns the names of all tools.
    pub(super) fn tools(&self) -> TaskResult<Vec<String>> {
        let answer = self.command(json!({ "do": "tools" }), COMMAND_TIMEOUT)?;
        match answer["tools"].as_array() {
            Some(tools) => Ok(tools.iter().filter_map(|name| Some(name.as_str()?.to_owned())).collect()),
            None => Err(format!("{}: the tools cannot be listed: {answer}", self.name).into()),
        }
    }

    pub(super) fn call(&self, tool: &str, arguments: &Value) -> TaskResult<CallAnswer> {
        self.call_within(tool, arguments, COMMAND_TIMEOUT)
    }

    /// Calls a tool, and waits for the answer for a time; a later one is dropped.
    pub(crate) fn call_within(
        &self,
        tool: &str,
        arguments: &Value,
        limit: Duration,
    ) -> TaskResult<CallAnswer> {
        let order = json!({ "do": "call", "name": tool, "arguments": arguments });
        let answer = self.command(order, limit)?;
        let text = |member: &str| answer[member].as_str().map(str::to_owned);
        match (text("text"), text("refused")) {
            (Some(text), _) if answer["isError"] == false => Ok(CallAnswer::Text(text)),
            (Some(why), _) | (None, Some(why)) => Ok(CallAnswer::Refused(why)),
            (None, None) => Err(format!("{}: a call was answered with {answer}", self.name).into()),
        }
    }

    fn command(&self, mut order: Value, limit: Duration) -> TaskResult<Value> {
        let answer: Receiver<Value> = {
            let mut orders = lock(&self.commands);
            orders.last += 1;
            order["id"] = orders.last.into();
            let (sender, receiver) = channel();
            match &mut *lock(&self.waiting) {
                Some(waiting) => waiting.insert(orders.last, sender),
                None => return Err(format!("{} has ended", self.name).into()),
            };
            writeln!(orders.pipe, "{order}")?;
            receiver
        };
        answer.recv_timeout(limit).map_err(|_| format!("{} never answered {order}", self.name).into())
    }
}
