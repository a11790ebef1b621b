//! The contracts that every store keeps.

use std::cell::RefCell;

use trunkline_session::{StateKeys, contract};
use trunkline_store_file::{FileStore, FileStoreLimits};

use crate::fixture::folder;

/// Makes stores in files that last as long as this does.
#[derive(Default)]
struct StoreMaker(RefCell<Vec<tempfile::TempDir>>);

impl StoreMaker {
    fn make(&self, limits: FileStoreLimits) -> FileStore {
        let (folder, path) = folder();
        self.0.borrow_mut().push(folder);
        FileStore::open(path, &StateKeys::random().unwrap(), limits).unwrap()
    }
}

#[test]
fn file_sessions_pass_the_contract_suite() {
    let maker = StoreMaker::default();
    contract::sessions(|sessions| maker.make(FileStoreLimits { sessions, ..Default::default() }).sessions());
}

#[test]
fn file_events_pass_the_contract_suite() {
    let maker = StoreMaker::default();
    contract::events(|events| maker.make(FileStoreLimits { events, ..Default::default() }).events());
}

#[test]
fn file_states_pass_the_contract_suite() {
    let maker = StoreMaker::default();
    contract::states(|states| maker.make(FileStoreLimits { states, ..Default::default() }).states());
}
