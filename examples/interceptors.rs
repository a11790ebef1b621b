//! Interceptors around every call: two of ours, and two of a program's own.
//!
//! `cargo run --example interceptors` serves standard input and output, and writes an audit to standard error.

use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use trunkline::prelude::*;
use trunkline::protocol::codec::ServerResult;
use trunkline::protocol::{RawJson, Refusal};
use trunkline::server::BoxFuture;
use trunkline::{ConcurrencyLimit, HandlerOutcome, IncomingCall, Interceptor, Next, Timeout};

/// Writes the caller, the outcome and the duration of each call, without arguments and results.
struct Audit<W>(Arc<Mutex<W>>);

impl<W: Write + Send + 'static> Interceptor for Audit<W> {
    fn intercept(
        &self,
        call: IncomingCall,
        next: Next,
    ) -> BoxFuture<'static, Result<HandlerOutcome, Refusal>> {
        let (who, method) = (call.context.principal(), call.method.as_str());
        // Any other name is the caller's own words.
        let tool =
            call.name().filter(|name| next.has_tool(name)).map(|name| format!(" {name}")).unwrap_or_default();
        let log = self.0.clone();
        Box::pin(async move {
            let began = Instant::now();
            let answer = next.run(call).await;
            let how = match &answer {
                Ok(HandlerOutcome::Done(_)) => "done",
                Ok(_) => "input_required",
                Err(refusal) => refusal.name(),
            };
            if let Ok(mut log) = log.lock() {
                // An audit that must not have gaps would refuse the call here instead.
                let _ = writeln!(log, "{who} {method}{tool} {how} {:?}", began.elapsed());
            }
            answer
        })
    }
}

/// Takes a word out of what tools answer.
async fn redact(call: IncomingCall, next: Next) -> Result<HandlerOutcome, Refusal> {
    let mut outcome = next.run(call).await?;
    if let HandlerOutcome::Done(ServerResult::Tool(result)) = &mut outcome {
        for block in &mut result.content {
            if let Some(clean) = block.as_text().map(|text| text.replace("hunter2", "[redacted]")) {
                *block = Content::text(clean);
            }
        }
        let clean = |raw: RawJson| RawJson::parse(raw.as_str().replace("hunter2", "[redacted]")).ok();
        result.structured = result.structured.take().and_then(clean);
    }
    Ok(outcome)
}

/// Makes the server; an interceptor that is added first sees a call first and its answer last.
pub(crate) fn server(log: impl Write + Send + 'static) -> Server {
    let lookup = Tool::new("lookup").description("Tells a password.").run(async || "it is hunter2");
    Server::new("guarded")
        .with(lookup)
        .layer(Audit(Arc::new(Mutex::new(log))))
        .layer(ConcurrencyLimit::per_principal(8))
        .layer(Timeout::new(Duration::from_secs(30)))
        .layer(redact)
}

#[tokio::main]
async fn main() -> trunkline::Result<()> {
    Ok(server(std::io::stderr()).serve(stdio()).await?)
}
