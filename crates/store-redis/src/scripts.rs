//! The scripts, and calls of them.

use std::sync::LazyLock;

use redis::{Script, ScriptInvocation, ToRedisArgs};

/// Declares scripts, each made of the parts that it needs.
macro_rules! scripts {
    ($($name:ident = $($part:literal)+;)*) => {
        $(pub(crate) static $name: LazyLock<Script> =
            LazyLock::new(|| Script::new(concat!($(include_str!(concat!("lua/", $part, ".lua")), "\n",)+)));)*
    };
}

scripts! {
    HEADER = "header";
    SESSION_CREATE = "clock" "session" "session_create";
    SESSION_USE = "clock" "session" "session_use";
    SESSION_UPDATE = "clock" "session" "session_update";
    SESSION_PEEK = "clock" "session" "session_peek";
    SESSION_CHECK = "clock" "session" "session_check";
    SESSION_EVICT = "clock" "session" "session_evict";
    SESSION_DELETE = "session_delete";
    INDEX_RESERVE = "clock" "index" "index_reserve";
    INDEX_RESIZE = "clock" "index" "index_resize";
    INDEX_RELEASE = "clock" "index" "index_release";
    INDEX_DUE = "clock" "index" "index_due";
    INDEX_SETTLE = "clock" "index" "index_settle";
    EVENTS_APPEND = "clock" "events" "events_append";
    EVENTS_CLAIM = "clock" "events_claim";
    EVENTS_FORGET = "clock" "events" "events_forget";
    EVENTS_REPLAY = "clock" "events_replay";
    BUS_SEND = "bus_send";
    BUS_PUBLISH = "bus_publish";
    BUS_REPORT = "bus_report";
    BUS_TAKEN = "bus_taken";
    STATES_CREATE = "clock" "states" "states_create";
    STATES_GET = "clock" "states" "states_get";
    STATES_REPLACE = "clock" "states" "states_replace";
    STATES_FORGET = "clock" "states" "states_forget";
    STATES_EXPIRE = "clock" "states" "states_expire";
}

/// A call of a script, which can be sent more than once.
pub(crate) struct ScriptCall(ScriptInvocation<'static>);

impl ScriptCall {
    pub(crate) fn new(script: &'static LazyLock<Script>, keys: &[String]) -> Self {
        let mut invocation = script.prepare_invoke();
        for key in keys {
            invocation.key(key);
        }
        Self(invocation)
    }

    pub(crate) fn arg(mut self, arg: impl ToRedisArgs) -> Self {
        self.0.arg(arg);
        self
    }

    pub(crate) fn invocation(&self) -> &ScriptInvocation<'static> {
        &self.0
    }
}
