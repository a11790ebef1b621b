use std::num::NonZeroU64;

use trunkline_protocol::{RawJson, Revision};
use trunkline_server::ObservedClient;
use trunkline_session::{Principal, SessionId};
use trunkline_transport::{WireDirection, WireMessage, WireObserver};

use super::ring::EventAudience;
use super::wire_taps::ClientWireTap;
use super::*;
use crate::limits::HubLimits;

fn stream(events: usize, event_bytes: usize) -> HubEvents {
    HubEvents::new(&HubLimits { events, event_bytes, event_message_bytes: 1000, ..HubLimits::default() })
}

fn stderr(line: impl Into<String>) -> EventBody {
    EventBody::Stderr(StderrEvent { server: "s".to_owned(), line: line.into() })
}

fn client(principal: &str) -> ObservedClient {
    ObservedClient {
        principal: Principal::Named(principal.into()),
        id: Some(SessionId::random()),
        description: Some(RawJson::from(serde_json::json!({ "name": "c", "version": "1" }))),
        transport: "http",
        revision: Revision::NEWEST,
    }
}

fn message(text: impl Into<String>) -> WireMessage {
    WireMessage {
        direction: WireDirection::Received,
        call: NonZeroU64::new(7),
        revision: Some(Revision::NEWEST),
        text: text.into(),
    }
}

fn taken(subscription: &mut EventSubscription) -> Vec<HubEvent> {
    std::iter::from_fn(|| subscription.try_next()).collect()
}

#[test]
fn ring_stays_within_its_bounds_at_any_rate() {
    let (most, bytes) = (5000, 1 << 20);
    let events = stream(most, bytes);
    let _attached = events.subscribe(EventViewer::Operator, None);
    let tap = ClientWireTap::new(&events);
    let client = client("ann");
    // More than the messages of a second at 100,000 a second, of every size.
    for number in 0..120_000_usize {
        tap.message(&client, message(format!(r#"{{"a":"{}"}}"#, "x".repeat(number * 31 % 1500))));
        if number % 100 == 0 {
            let (count, used) = events.size();
            assert!(count <= most && used <= bytes, "{count} events, {used} bytes");
        }
    }
    assert!(events.size().0 > 100, "the newest are kept");
    let huge = stream(10, 100);
    huge.publish(stderr("too large for the ring"), EventAudience::Operators);
    assert_eq!(huge.size(), (0, 0));
}

#[test]
fn ring_without_a_subscription_keeps_a_sixteenth() {
    let events = stream(1600, 1 << 20);
    let fill = || (0..1700).for_each(|_| events.publish(stderr("x"), EventAudience::Operators));
    fill();
    assert_eq!(events.size().0, 100);
    let attached = events.subscribe(EventViewer::Operator, None);
    fill();
    assert_eq!(events.size().0, 1600);
    drop(attached);
}

#[tokio::test(start_paused = true)]
async fn slow_reader_gets_the_count_of_what_it_lost() {
    let events = stream(10, 1 << 20);
    let mut reader = events.subscribe(EventViewer::Operator, None);
    for number in 0..25 {
        events.publish(stderr(number.to_string()), EventAudience::Operators);
    }
    let seen = taken(&mut reader);
    assert_eq!(seen.first().map(|event| event.body.clone()), Some(EventBody::Dropped { count: 15 }));
    let lines: Vec<_> = seen.iter().skip(1).map(|event| event.seq).collect();
    assert_eq!(lines, (16..=25).collect::<Vec<u64>>());
    // A reader that lost its connection resumes after the last event that it has seen.
    drop(reader);
    assert!(events.is_attached(), "messages are still published for a while");
    let mut resumed = events.subscribe(EventViewer::Operator, Some(20));
    assert_eq!(taken(&mut resumed).iter().map(|event| event.seq).collect::<Vec<_>>(), [21, 22, 23, 24, 25]);
    let waiting = tokio::spawn(async move {
        let event = resumed.next_event().await;
        drop(resumed);
        event
    });
    tokio::task::yield_now().await;
    events.publish(stderr("later"), EventAudience::Operators);
    assert_eq!(waiting.await.unwrap().seq, 26);
    tokio::time::sleep(std::time::Duration::from_secs(11)).await;
    assert!(!events.is_attached(), "no reader is left");
}

#[tokio::test(start_paused = true)]
async fn subscription_without_messages_copies_none() {
    let events = stream(100, 1 << 20);
    let mut calls = events.subscribe_without_messages(EventViewer::Operator, None);
    let tap = ClientWireTap::new(&events);
    assert!(events.is_followed() && tap.numbers_calls());
    assert!(!events.is_attached() && !tap.is_attached(), "no message is copied");
    // Another subscription has messages copied, which this one does not get.
    let mut all = events.subscribe(EventViewer::Operator, None);
    assert!(tap.is_attached());
    tap.message(&client("ann"), message("{}"));
    events.publish(stderr("a line"), EventAudience::Operators);
    assert_eq!(taken(&mut all).len(), 2);
    let seen: Vec<_> = taken(&mut calls).into_iter().map(|event| event.body).collect();
    assert_eq!(seen, [stderr("a line")]);
    drop((all, calls));
    tokio::time::sleep(std::time::Duration::from_secs(11)).await;
    assert!(!events.is_followed() && !events.is_attached());
}

#[tokio::test(start_paused = true)]
async fn viewer_sees_only_what_its_principal_may_see() {
    let events = stream(100, 1 << 20);
    let viewer = |name: &str| EventViewer::Principal(Principal::Named(name.into()));
    let mut ann = events.subscribe(viewer("ann"), None);
    let mut operator = events.subscribe(EventViewer::Operator, None);
    let tap = ClientWireTap::new(&events);
    for name in ["ann", "bob"] {
        tap.connected(&client(name));
        tap.message(&client(name), message(format!(r#"{{"of":"{name}"}}"#)));
    }
    events.publish(stderr("of the server"), EventAudience::Operators);
    assert_eq!(taken(&mut operator).len(), 5);
    let seen = taken(&mut ann);
    assert_eq!(seen.len(), 2, "{seen:?}");
    assert!(seen.iter().all(|event| !event.to_line().contains("bob")), "{seen:?}");
}

#[tokio::test(start_paused = true)]
async fn viewer_that_is_no_operator_never_sees_where_a_server_is() {
    let events = stream(100, 1 << 20);
    let owner = Principal::Named("ann".into());
    let mut ann = events.subscribe(EventViewer::Principal(owner.clone()), None);
    let mut operator = events.subscribe(EventViewer::Operator, None);
    let line = r#"{"seq":1,"time":"2026-11-18T09:00:00Z","kind":"server_call","call":"c1","server":"git",
        "method":"tools/call","outcome":"ok","micros":1,"address":"git.internal","port":8443}"#;
    let body = HubEvent::parse(&line.replace('\n', "")).unwrap().body;
    events.publish(body, EventAudience::Owner(owner));
    for (reader, is_shown) in [(&mut ann, false), (&mut operator, true)] {
        let seen = taken(reader).iter().map(HubEvent::to_line).collect::<String>();
        assert!(seen.contains("server_call"), "{seen}");
        assert_eq!(seen.contains("git.internal") && seen.contains("8443"), is_shown, "{seen}");
    }
}

#[tokio::test(start_paused = true)]
async fn secrets_are_masked_before_they_enter_the_ring() {
    let events = stream(100, 1 << 20);
    let mut reader = events.subscribe(EventViewer::Operator, None);
    let tap = ClientWireTap::new(&events);
    let secret = "s3cr3t-s3cr3t-s3cr3t-s3cr3t-s3cr3t-s3cr3t";
    for text in [
        format!(r#"{{"params":{{"requestState":"{secret}","_meta":{{"x/token":"{secret}"}}}}}}"#),
        format!(r#"{{"error":{{"message":"open http://127.0.0.1:1/connect/{secret} to log in"}}}}"#),
        format!(r#"{{"method":"elicitation/create","params":{{"url":"https://a/{secret}"}}}}"#),
        format!(r#"{{"_meta":{{"a":"{secret}"}},"b":"{}"}}"#, "x".repeat(2000)),
    ] {
        tap.message(&client("ann"), message(text));
    }
    for event in taken(&mut reader) {
        let line = event.to_line();
        assert!(!line.contains("s3cr3t"), "{line}");
        assert!(line.contains("[masked]"), "{line}");
        let read: serde_json::Value = serde_json::from_str(&line).unwrap();
        let again = HubEvent::parse(&line).unwrap().to_line();
        assert_eq!(serde_json::from_str::<serde_json::Value>(&again).unwrap(), read);
    }
}

#[test]
fn record_reader_refuses_newer_formats_and_ignores_unknown_members() {
    let event =
        r#"{"seq":1,"time":"2026-11-18T09:00:00.000001Z","kind":"stderr","server":"s","line":"a","new":1}"#;
    let unknown = r#"{"seq":2,"time":"2026-11-18T09:00:00Z","kind":"novel"}"#;
    let file = |header: &str, rest: &str| format!("{header}\n{event}\n{unknown}\n{rest}");
    let read = |text: String| -> Result<Vec<HubEvent>, String> {
        let reader = RecordReader::new(std::io::Cursor::new(text)).map_err(|error| error.to_string())?;
        reader.map(|event| event.map_err(|error| error.to_string())).collect()
    };
    let header = r#"{"trunkline_record":1,"started":"2026-11-18T09:00:00Z","version":"0.1.0","new":true}"#;
    let events = read(file(header, r#"{"seq":3,"ti"#)).unwrap();
    assert_eq!(events.len(), 2, "a line without an end is not read");
    assert_eq!(
        events.iter().map(|event| event.body.clone()).collect::<Vec<_>>(),
        [stderr("a"), EventBody::Unknown]
    );
    assert_eq!(
        events.first().map(|event| event.time.to_string()).as_deref(),
        Some("2026-11-18T09:00:00.000001Z")
    );
    assert!(read(file(r#"{"trunkline_record":2}"#, "")).unwrap_err().contains("format 2"));
    assert!(read(file(r#"{"jsonrpc":"2.0"}"#, "")).unwrap_err().contains("not a record file"));
    assert!(read(file(header, "nonsense\n")).unwrap_err().starts_with("line 4:"));
}
