//! Many sessions in one file.

use std::sync::Arc;

use trunkline_session::StateKeys;
use trunkline_store_file::{FileStore, FileStoreLimits};

use crate::fixture::{NOW, folder, record};
use crate::session_crowd::{limits, open_list_touch_and_expire};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_sessions_in_a_file_are_listed_touched_and_expired() {
    let (_folder, path) = folder();
    let limits = FileStoreLimits { sessions: limits(), ..Default::default() };
    let store = FileStore::open(&path, &StateKeys::random().unwrap(), limits).unwrap();
    let empty = std::fs::metadata(&path).unwrap().len();
    let measured = path.clone();
    let full = move |count: usize| {
        let bytes = std::fs::metadata(&measured).unwrap().len() - empty;
        println!("{count} sessions: {} bytes of the file each", bytes / count as u64);
    };
    open_list_touch_and_expire(Arc::new(store.sessions()), record, NOW, full).await;
}
