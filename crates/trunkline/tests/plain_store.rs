//! The example of a store, held to what every store has to keep.

#[cfg(test)]
#[path = "../../../examples/plain_store.rs"]
#[allow(dead_code, reason = "its main is not what is tested")]
mod example;

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};
    use std::sync::atomic::{AtomicUsize, Ordering};

    use trunkline::protocol::{RawJson, Revision};
    use trunkline::session::{
        Principal, SessionId, SessionLimits, SessionRecord, SessionStore as _, Timestamp, contract,
    };

    use crate::example;

    fn folder() -> PathBuf {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("folder-store-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }

    /// Waits for a future in a runtime of its own.
    fn run<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
    }

    fn open(folder: PathBuf, limits: SessionLimits) -> example::FolderStore {
        example::FolderStore::open(folder, limits).unwrap()
    }

    #[test]
    fn example_store_passes_the_contract_suite() {
        contract::sessions(|limits| open(folder(), limits));
    }

    #[test]
    fn sessions_of_the_example_survive_their_process_and_end_with_their_file() {
        let folder = folder();
        // Sessions live as long as they are used, and these were opened just now.
        let millis = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_millis();
        let now = Timestamp(u64::try_from(millis).unwrap());
        let record = SessionRecord {
            id: SessionId::random(),
            principal: Principal::Anonymous,
            revision: Revision::V2025_06_18,
            capabilities: RawJson::EMPTY_OBJECT,
            client: None,
            log_level: None,
            subscriptions: Default::default(),
            created: now,
        };
        let id = record.id;
        let store = open(folder.clone(), SessionLimits::default());
        run(store.create(record, now)).unwrap();
        drop(store);
        let store = open(folder.clone(), SessionLimits::default());
        assert_eq!(store.count(), 1);
        assert!(run(store.get(id, &Principal::Anonymous, now)).unwrap().is_some());
        assert!(run(store.delete(id, &Principal::Anonymous)).unwrap());
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn changes_of_the_example_reach_their_files_and_unchangeable_fields_stay() {
        let folder = folder();
        let owner = Principal::Named("ada".into());
        let record = SessionRecord {
            id: SessionId::random(),
            principal: owner.clone(),
            revision: Revision::V2025_06_18,
            capabilities: RawJson::EMPTY_OBJECT,
            client: None,
            log_level: None,
            subscriptions: Default::default(),
            created: Timestamp(1),
        };
        let limits = || SessionLimits { absolute: std::time::Duration::MAX, ..SessionLimits::default() };
        let store = open(folder.clone(), limits());
        run(store.create(record.clone(), Timestamp(1))).unwrap();
        let changed = SessionRecord {
            created: Timestamp(2),
            subscriptions: ["x:a".to_owned()].into(),
            ..record.clone()
        };
        assert!(run(store.update(changed.clone(), Timestamp(2))).unwrap());
        drop(store);
        let store = open(folder.clone(), limits());
        let found = run(store.list(&owner, Timestamp(3))).unwrap();
        assert_eq!(found, [SessionRecord { created: Timestamp(1), ..changed }]);
        assert_eq!(run(store.list(&Principal::Anonymous, Timestamp(3))).unwrap(), []);
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn the_example_of_a_store_is_short() {
        let text = include_str!("../../../examples/plain_store.rs");
        let store = text.split_once("type Reply").unwrap().1.split_once("fn now()").unwrap().0;
        let is_code = |line: &&str| !line.trim().is_empty() && !line.trim().starts_with("//");
        let count = store.lines().filter(is_code).count();
        assert!(count <= 60, "{count} lines of code");
    }
}
