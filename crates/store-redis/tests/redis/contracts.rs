//! The contracts that every store keeps.

use trunkline_session::contract;
use trunkline_store_redis::RedisStoreLimits;

use crate::fixture::StoreMaker;
use crate::server::RedisProcess;

#[test]
fn redis_sessions_pass_the_contract_suite() {
    let server = RedisProcess::start();
    let maker = StoreMaker::new(server.url());
    contract::sessions(|sessions| maker.make(RedisStoreLimits { sessions, ..Default::default() }).sessions());
}

#[test]
fn redis_events_pass_the_contract_suite() {
    let server = RedisProcess::start();
    let maker = StoreMaker::new(server.url());
    contract::events(|events| maker.make(RedisStoreLimits { events, ..Default::default() }).events());
}

#[test]
fn redis_states_pass_the_contract_suite() {
    let server = RedisProcess::start();
    let maker = StoreMaker::new(server.url());
    contract::states(|states| maker.make(RedisStoreLimits { states, ..Default::default() }).states());
}

#[test]
fn redis_events_pass_the_contract_suite_of_claims() {
    let server = RedisProcess::start();
    let maker = StoreMaker::new(server.url());
    contract::claims(|events| maker.make(RedisStoreLimits { events, ..Default::default() }).events());
}

#[test]
fn redis_bus_passes_the_contract_suite() {
    let server = RedisProcess::start();
    let maker = StoreMaker::new(server.url());
    contract::bus(|limits| maker.make_buses(&limits));
}
