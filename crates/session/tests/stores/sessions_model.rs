//! Random operations on the session store, compared with a list that is searched from end to end.

use std::collections::BTreeSet;
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use trunkline_protocol::LoggingLevel;
use trunkline_session::{
    MemorySessions, Principal, SessionId, SessionLimits, SessionRecord, SessionStore, StoreError, Timestamp,
};

use super::{answer, now_ready, record};

const LIMITS: SessionLimits = SessionLimits {
    total: 6,
    per_principal: 2,
    subscription_bytes: 1 << 10,
    record_bytes: 1024,
    total_bytes: 1 << 30,
    idle: Duration::from_millis(10),
    absolute: Duration::from_millis(35),
};

/// One operation; `session` picks among all sessions that ever were, `who` among four principals.
#[derive(Clone, Debug)]
enum Op {
    Create { who: usize },
    CreateAgain { session: usize },
    Get { session: usize, who: usize },
    GetOwn { session: usize },
    Update { session: usize, who: usize, level: usize },
    Touch { session: usize },
    Delete { session: usize, who: usize },
    DeleteOwn { session: usize },
    List { who: usize },
    Expire,
    Wait { milliseconds: u64 },
}

fn op() -> impl Strategy<Value = Op> {
    let (session, who) = (0..64_usize, 0..4_usize);
    prop_oneof![
        4 => who.clone().prop_map(|who| Op::Create { who }),
        1 => session.clone().prop_map(|session| Op::CreateAgain { session }),
        1 => (session.clone(), who.clone()).prop_map(|(session, who)| Op::Get { session, who }),
        3 => session.clone().prop_map(|session| Op::GetOwn { session }),
        2 => (session.clone(), who.clone(), 0..8_usize)
            .prop_map(|(session, who, level)| Op::Update { session, who, level }),
        2 => session.clone().prop_map(|session| Op::Touch { session }),
        1 => (session.clone(), who.clone()).prop_map(|(session, who)| Op::Delete { session, who }),
        2 => session.prop_map(|session| Op::DeleteOwn { session }),
        1 => who.prop_map(|who| Op::List { who }),
        2 => Just(Op::Expire),
        4 => (0..12_u64).prop_map(|milliseconds| Op::Wait { milliseconds }),
    ]
}

fn principal(who: usize) -> Principal {
    match who {
        0 => Principal::Anonymous,
        1 => Principal::Process,
        2 => Principal::Named("ada".into()),
        _ => Principal::Named("eve".into()),
    }
}

/// The store as a plain list of records with the time of their last use.
#[derive(Default)]
struct Model {
    held: Vec<(SessionRecord, Timestamp)>,
}

impl Model {
    fn is_over((record, used): &(SessionRecord, Timestamp), now: Timestamp) -> bool {
        now >= used.plus(LIMITS.idle) || now >= record.created.plus(LIMITS.absolute)
    }

    fn create(&mut self, record: SessionRecord, now: Timestamp) -> Result<(), StoreError> {
        let of_principal = self.held.iter().filter(|(held, _)| held.principal == record.principal).count();
        if self.held.iter().any(|(held, _)| held.id == record.id) {
            Err(StoreError::Duplicate)
        } else if self.held.len() >= LIMITS.total {
            Err(StoreError::Full)
        } else if matches!(record.principal, Principal::Named(_)) && of_principal >= LIMITS.per_principal {
            Err(StoreError::PrincipalQuotaExceeded)
        } else {
            self.held.push((record, now));
            Ok(())
        }
    }

    fn find(&mut self, id: SessionId, who: Option<&Principal>, now: Timestamp) -> Option<&mut SessionRecord> {
        let found = self.held.iter_mut().find(|held| {
            held.0.id == id && who.is_none_or(|who| held.0.principal == *who) && !Self::is_over(held, now)
        })?;
        found.1 = now;
        Some(&mut found.0)
    }

    fn delete(&mut self, id: SessionId, who: &Principal) -> bool {
        let before = self.held.len();
        self.held.retain(|(held, _)| held.id != id || held.principal != *who);
        self.held.len() < before
    }

    fn list(&self, who: &Principal, now: Timestamp) -> Vec<SessionRecord> {
        let own = self.held.iter().filter(|held| held.0.principal == *who && !Self::is_over(held, now));
        own.map(|(record, _)| record.clone()).collect()
    }

    fn expire(&mut self, now: Timestamp) -> BTreeSet<SessionId> {
        let over = self.held.extract_if(.., |held| Self::is_over(held, now));
        over.map(|(record, _)| record.id).collect()
    }
}

/// The store and the model side by side; every operation checks that they agree.
struct Pair {
    store: MemorySessions,
    model: Model,
    ever: Vec<SessionRecord>,
    now: Timestamp,
}

impl Pair {
    fn pick(&self, session: usize) -> SessionRecord {
        // Recent sessions are picked more often than not, as they are the ones that still exist.
        let recent = self.ever.iter().rev().cycle().nth(session % 8);
        recent.cloned().unwrap_or_else(|| record(&Principal::Anonymous, self.now))
    }

    fn create(&mut self, record: &SessionRecord) -> Result<(), TestCaseError> {
        let expected = self.model.create(record.clone(), self.now);
        prop_assert_eq!(now_ready(self.store.create(record.clone(), self.now)), expected);
        Ok(())
    }

    fn get(&mut self, id: SessionId, who: &Principal) -> Result<(), TestCaseError> {
        let expected = self.model.find(id, Some(who), self.now).cloned();
        prop_assert_eq!(now_ready(self.store.get(id, who, self.now)), Ok(expected));
        Ok(())
    }

    fn update(&mut self, record: &SessionRecord) -> Result<(), TestCaseError> {
        let found = self.model.find(record.id, Some(&record.principal), self.now);
        let expected = found.map(|found| found.log_level = record.log_level).is_some();
        prop_assert_eq!(now_ready(self.store.update(record.clone(), self.now)), Ok(expected));
        Ok(())
    }

    fn delete(&mut self, id: SessionId, who: &Principal) -> Result<(), TestCaseError> {
        let expected = self.model.delete(id, who);
        prop_assert_eq!(now_ready(self.store.delete(id, who)), Ok(expected));
        Ok(())
    }

    fn list(&mut self, who: &Principal) -> Result<(), TestCaseError> {
        let mut listed = answer(self.store.list(who, self.now));
        let mut expected = self.model.list(who, self.now);
        listed.sort_by_key(|record| record.id);
        expected.sort_by_key(|record| record.id);
        prop_assert_eq!(listed, expected);
        Ok(())
    }

    fn run(&mut self, op: &Op) -> Result<(), TestCaseError> {
        match *op {
            Op::Create { who } => {
                let record = record(&principal(who), self.now);
                self.ever.push(record.clone());
                self.create(&record)?;
            }
            Op::CreateAgain { session } => self.create(&self.pick(session))?,
            Op::Get { session, who } => self.get(self.pick(session).id, &principal(who))?,
            Op::GetOwn { session } => {
                let own = self.pick(session);
                self.get(own.id, &own.principal)?;
            }
            Op::Update { session, who, level } => {
                let log_level = LoggingLevel::ALL.get(level).copied();
                let changed = SessionRecord { log_level, created: self.now, ..self.pick(session) };
                self.update(&changed)?;
                self.update(&SessionRecord { principal: principal(who), ..changed })?;
            }
            Op::Touch { session } => {
                let id = self.pick(session).id;
                let expected = self.model.find(id, None, self.now).is_some();
                prop_assert_eq!(now_ready(self.store.touch(id, self.now)), Ok(expected));
            }
            Op::Delete { session, who } => self.delete(self.pick(session).id, &principal(who))?,
            Op::DeleteOwn { session } => {
                let own = self.pick(session);
                self.delete(own.id, &own.principal)?;
            }
            Op::List { who } => self.list(&principal(who))?,
            Op::Expire => {
                let expired = answer(self.store.expire(self.now));
                prop_assert_eq!(expired.into_iter().collect::<BTreeSet<_>>(), self.model.expire(self.now));
            }
            Op::Wait { milliseconds } => self.now = self.now.plus(Duration::from_millis(milliseconds)),
        }
        prop_assert_eq!(self.store.count(), self.model.held.len());
        prop_assert!(self.store.count() <= LIMITS.total);
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn memory_sessions_match_a_linear_search_model(ops in vec(op(), 1..200)) {
        let mut pair = Pair {
            store: MemorySessions::new(LIMITS),
            model: Model::default(),
            ever: Vec::new(),
            now: Timestamp(1_000),
        };
        let empty = format!("{:?}", pair.store);
        for op in &ops {
            pair.run(op)?;
        }
        for who in 0..4 {
            pair.list(&principal(who))?;
        }
        pair.run(&Op::Wait { milliseconds: 1_000 })?;
        pair.run(&Op::Expire)?;
        prop_assert_eq!(format!("{:?}", pair.store), empty, "an emptied store holds nothing in any index");
    }
}
