//! The contract of buses.

use bytes::Bytes;

use super::{block_on, contract_violation, expect_ok};
use crate::{BusDelivery, BusEvent, BusLimits, ProcessId, SessionBus, StoreError};

/// Checks that a bus does what [`SessionBus`] promises.
///
/// `make` returns three members of a new bus with the given limits; it is called many times.
///
/// # Panics
/// The bus breaks a promise.
pub fn bus<B: SessionBus>(make: impl Fn(BusLimits) -> [B; 3]) {
    let make = &|limits: BusLimits| -> [Box<dyn SessionBus>; 3] {
        make(limits).map(|member| -> Box<dyn SessionBus> { Box::new(member) })
    };
    delivers_to_the_addressee_in_order(make);
    publishes_to_all_others_in_order(make);
    knows_which_processes_are_there(make);
    ends_for_a_process_that_leaves(make);
    bounds_messages_and_inboxes(make);
}

type MakeBus<'a> = &'a dyn Fn(BusLimits) -> [Box<dyn SessionBus>; 3];

fn text(number: usize) -> Bytes {
    Bytes::from(format!("message {number}"))
}

#[track_caller]
fn expect_next(bus: &dyn SessionBus, expected: &BusEvent, why: &str) {
    assert_eq!(block_on(bus.next()).as_ref(), Some(expected), "{why}");
}

#[track_caller]
fn send(from: &dyn SessionBus, to: &dyn SessionBus, message: Bytes) {
    let delivered = expect_ok(from.send(to.process(), message));
    assert_eq!(delivered, BusDelivery::Delivered, "a message to a process that is there is delivered");
}

fn delivers_to_the_addressee_in_order(make: MakeBus<'_>) {
    let [first, second, third] = make(BusLimits::default());
    for number in 0..20 {
        send(&*first, &*second, text(number));
    }
    send(&*second, &*second, text(20));
    send(&*first, &*third, text(21));
    for number in 0..=20 {
        expect_next(&*second, &BusEvent::Message(text(number)), "messages arrive in order");
    }
    expect_next(&*third, &BusEvent::Message(text(21)), "a message reaches its addressee alone");
}

fn publishes_to_all_others_in_order(make: MakeBus<'_>) {
    let [first, second, third] = make(BusLimits::default());
    for number in 0..20 {
        expect_ok(first.publish(text(number)));
    }
    send(&*second, &*first, text(20));
    for other in [&second, &third] {
        for number in 0..20 {
            expect_next(&**other, &BusEvent::Published(text(number)), "published messages arrive in order");
        }
    }
    expect_next(&*first, &BusEvent::Message(text(20)), "a process does not receive what it publishes");
}

fn knows_which_processes_are_there(make: MakeBus<'_>) {
    let [first, second, _third] = make(BusLimits::default());
    assert_ne!(first.process(), second.process(), "each process has an id of its own");
    for process in [first.process(), second.process()] {
        assert!(expect_ok(first.is_alive(process)), "a process that is there is alive");
    }
    let unknown = ProcessId::from_bits(first.process().bits() ^ second.process().bits() ^ 1);
    assert!(!expect_ok(first.is_alive(unknown)), "an unknown process is not alive");
    let sent = expect_ok(first.send(unknown, text(0)));
    assert_eq!(sent, BusDelivery::ProcessGone, "a message to an unknown process is not delivered");
}

fn ends_for_a_process_that_leaves(make: MakeBus<'_>) {
    let [first, second, third] = make(BusLimits::default());
    block_on(second.leave());
    assert_eq!(block_on(second.next()), None, "a process that has left receives nothing");
    assert!(!expect_ok(first.is_alive(second.process())), "a process that has left is not alive");
    let sent = expect_ok(first.send(second.process(), text(0)));
    assert_eq!(sent, BusDelivery::ProcessGone, "a message to a process that has left is not delivered");
    expect_ok(first.publish(text(1)));
    expect_next(&*third, &BusEvent::Published(text(1)), "the others go on");
}

fn bounds_messages_and_inboxes(make: MakeBus<'_>) {
    let limits = BusLimits { message_bytes: 1024, published_bytes: 64, inbox_messages: 4, inbox_bytes: 2048 };
    let [first, second, third] = make(limits);
    let large = |size| Bytes::from(vec![b'x'; size]);
    let refused = block_on(first.send(second.process(), large(1025)));
    assert_eq!(refused, Err(StoreError::TooLarge), "a large message is refused");
    assert_eq!(block_on(first.publish(large(65))), Err(StoreError::TooLarge), "published ones are smaller");
    // Nothing is taken from the inbox of the first, unless its process reads ahead, and then within a bound too.
    let mut accepted = 0;
    let outcome = loop {
        match block_on(second.send(first.process(), large(1000))) {
            Ok(BusDelivery::Delivered) => accepted += 1,
            other => break other,
        }
        if accepted > 64 {
            contract_violation("an inbox that is not read takes messages without end");
        }
    };
    assert_eq!(outcome, Err(StoreError::Full), "a full inbox refuses messages");
    assert!(accepted >= 1, "an inbox makes use of its room");
    for _ in 0..accepted {
        expect_next(&*first, &BusEvent::Message(large(1000)), "what was accepted arrives");
    }
    send(&*third, &*second, text(1));
    expect_next(&*second, &BusEvent::Message(text(1)), "a full inbox concerns its own process alone");
}
