use serde_json::{Value, json};

use super::model::{TopCall, TopModel, outcome_name};

/// Returns the model as JSON, for programs. The calls are those since the command began.
pub(crate) fn snapshot(model: &TopModel, seconds: f64, now: i64) -> Value {
    let servers = model.servers.iter().map(|server| {
        let state = &server.state;
        let percentiles = server.calls.percentiles(now);
        let (calls, errors) = server.calls.totals(now);
        json!({
            "name": state.name,
            "state": state.state,
            "reason": state.reason,
            "retry_in_ms": state.retry_in_ms,
            "revision": state.revision,
            "transport": state.transport,
            "tools": state.tools,
            "connections": state.connections,
            "starts": state.starts,
            "running": state.calls,
            "calls": calls,
            "errors": errors,
            "p50_us": percentiles.map(|found| found.p50),
            "p95_us": percentiles.map(|found| found.p95),
            "p99_us": percentiles.map(|found| found.p99),
        })
    });
    let clients = model.clients.iter().map(|(id, client)| {
        json!({
            "id": id,
            "name": client.name,
            "principal": client.principal,
            "revision": client.revision,
            "transport": client.transport,
            "connected": client.is_connected,
            "calls": client.calls,
        })
    });
    json!({
        "hub": { "version": model.version, "pid": model.pid, "url": model.url, "config": model.config },
        "seconds": seconds,
        "servers": servers.collect::<Vec<_>>(),
        "clients": clients.collect::<Vec<_>>(),
        "calls": model.calls.iter().map(call).collect::<Vec<_>>(),
        "dropped": model.dropped,
    })
}

fn call(call: &TopCall) -> Value {
    let end = call.end.as_ref();
    json!({
        "call": call.start.call,
        "time": call.time,
        "server": call.start.server,
        "client": call.start.client,
        "client_name": call.start.client_name,
        "method": call.start.method,
        "name": call.start.name,
        "item": call.start.item,
        "outcome": end.map(|end| outcome_name(end.outcome)),
        "micros": end.map(|end| end.micros),
        "error": end.and_then(|end| end.error.as_ref()),
    })
}
