//! Messages that were right once, changed at random, over HTTP and over pipes.

use std::collections::BTreeMap;
use std::io::{BufRead as _, Write as _};
use std::time::Instant;

use super::mutate::{RandomSource, mutate};
use super::target::{HttpTarget, PipedTarget, mib};
use super::wire::{self, RawHttpClient};
use crate::TaskResult;
use crate::table::TextTable;

const SEED: u64 = 0x7472_756e_6b6c_696e;

pub(crate) fn campaign(number: usize) -> TaskResult {
    let mut table = TextTable::new(&["over", "messages", "seconds", "before", "after", "answers"]);
    table.row(over_http(number)?);
    table.row(over_pipes(number)?);
    print!("{}", table.render());
    Ok(())
}

/// Messages of every kind but those that open a stream, which would leave no answer to count.
fn seeds() -> Vec<Vec<u8>> {
    let echo = r#""name":"echo","arguments":{"message":"soak \u00e9 and \"more\""},"#;
    let legacy = [
        r#"{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"echo","arguments":{"message":"m"},"_meta":{"progressToken":7}}}"#,
        r#"{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{"cursor":"x"}}"#,
        r#"{"jsonrpc":"2.0","id":3,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#,
        r#"{"jsonrpc":"2.0","id":"q","result":{"action":"accept","content":{}}}"#,
        r#"[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"ping"}]"#,
    ];
    let modern = [
        wire::modern("tools/call", echo),
        wire::modern("tools/list", ""),
        wire::modern("server/discover", ""),
    ];
    legacy.iter().map(|text| text.as_bytes().to_vec()).chain(modern).collect()
}

fn next(seeds: &[Vec<u8>], dice: &mut RandomSource) -> Vec<u8> {
    let seed = seeds.get(dice.below(seeds.len())).map(Vec::as_slice).unwrap_or_default();
    mutate(seed, dice)
}

fn over_http(number: usize) -> TaskResult<Vec<String>> {
    let mut target = HttpTarget::echo(&[])?;
    let mut client = RawHttpClient::connect(target.address)?;
    let session = client.request(&wire::initialize())?;
    let session = session.header("mcp-session-id").ok_or("no session")?;
    let forms = [wire::call_headers("echo"), format!("Mcp-Session-Id: {session}\r\n"), String::new()];
    let (mut dice, seeds, mut answers) = (RandomSource::new(SEED), seeds(), BTreeMap::new());
    let mut before = target.usage()?;
    let started = Instant::now();
    for n in 0..number {
        if n == number / 10 {
            // The allocator has seen by now what it will see.
            before = target.usage()?;
        }
        let headers = forms.get(dice.below(forms.len())).map(String::as_str).unwrap_or_default();
        let reply = client.request(&wire::post(headers, &next(&seeds, &mut dice)))?;
        *answers.entry(reply.status.to_string()).or_default() += 1;
        if reply.header("connection") == Some("close") {
            client = RawHttpClient::connect(target.address)?;
        }
    }
    let seconds = started.elapsed().as_secs_f64();
    wire::assert_served(target.address)?;
    Ok(row("HTTP", number, seconds, before.memory, target.usage()?.memory, &answers))
}

fn over_pipes(number: usize) -> TaskResult<Vec<String>> {
    const TURN: usize = 50;
    let mut target = PipedTarget::echo()?;
    let (mut dice, seeds, mut answers) = (RandomSource::new(SEED), seeds(), BTreeMap::new());
    let mut before = target.usage()?;
    let started = Instant::now();
    let mut sent = 0;
    while sent < number {
        if sent <= number / 10 {
            before = target.usage()?;
        }
        let mut lines = Vec::new();
        for _ in 0..TURN.min(number - sent) {
            lines.extend(next(&seeds, &mut dice).into_iter().filter(|byte| *byte != b'\n'));
            lines.push(b'\n');
            sent += 1;
        }
        // A good message after the broken ones is answered last, which shows that the server still reads.
        let mark = format!("mark-{sent}");
        lines.extend(format!("{{\"jsonrpc\":\"2.0\",\"id\":\"{mark}\",\"method\":\"ping\"}}\n").bytes());
        target.input.write_all(&lines)?;
        loop {
            let mut line = String::new();
            if target.output.read_line(&mut line)? == 0 {
                return Err("the server ended".into());
            }
            if line.contains(&mark) {
                break;
            }
            let kind = code_of(&line).unwrap_or_else(|| "result".to_owned());
            *answers.entry(kind).or_default() += 1;
        }
    }
    let seconds = started.elapsed().as_secs_f64();
    Ok(row("pipes", number, seconds, before.memory, target.usage()?.memory, &answers))
}

fn code_of(line: &str) -> Option<String> {
    let answer: serde_json::Value = serde_json::from_str(line).ok()?;
    Some(answer.get("error")?.get("code")?.to_string())
}

fn row(
    over: &str,
    number: usize,
    seconds: f64,
    before: usize,
    after: usize,
    answers: &BTreeMap<String, usize>,
) -> Vec<String> {
    let answers: Vec<String> = answers.iter().map(|(kind, count)| format!("{kind}: {count}")).collect();
    vec![
        over.to_owned(),
        number.to_string(),
        format!("{seconds:.1}"),
        mib(before),
        mib(after),
        answers.join(", "),
    ]
}
