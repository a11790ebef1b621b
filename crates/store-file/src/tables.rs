//! The tables of the file: reading all of them at the start, and writing changed rows.

use redb::{Database, ReadableTable as _, TableDefinition, WriteTransaction};
use trunkline_session::{LoggedEvent, RecordError, RecordSealer, RowKind, Timestamp};

use crate::error::DatabaseFailure;
use crate::row::{RowKey, read_session, read_state, write_session};
use crate::store_core::StoreMemory;
use crate::write_queue::DirtyRows;

const HEADER: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("header");
const SESSIONS: TableDefinition<'_, &RowKey, &[u8]> = TableDefinition::new("sessions");
const EVENTS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("events");
const STATES: TableDefinition<'_, &RowKey, &[u8]> = TableDefinition::new("states");

/// The version of the tables: the newest that this build reads, and the one that it writes.
const FORMAT: u32 = 1;

const FORMAT_KEY: &str = "format";
const SEAL_KEY: &str = "seal";

/// Why the tables cannot be read.
pub(crate) enum LoadError {
    WrongKey,
    Newer(String),
    File(DatabaseFailure),
}

impl<E: Into<DatabaseFailure>> From<E> for LoadError {
    fn from(error: E) -> Self {
        Self::File(error.into())
    }
}

/// Checks the header, and writes it if the file is new; returns whether it is sealed with the first key.
pub(crate) fn check_header(database: &Database, sealer: &RecordSealer) -> Result<bool, LoadError> {
    let writing = database.begin_write()?;
    let is_current = {
        let mut header = writing.open_table(HEADER)?;
        let format = header.get(FORMAT_KEY)?.map(|format| format.value().to_vec());
        match format {
            None => {
                header.insert(FORMAT_KEY, FORMAT.to_le_bytes().as_slice())?;
                drop(header);
                write_seal(&writing, sealer)?;
                true
            }
            Some(format) => {
                let version = format.as_slice().try_into().map_or(u32::MAX, u32::from_le_bytes);
                if version > FORMAT {
                    let detail = format!("it has format {version}, and this version reads {FORMAT}");
                    return Err(LoadError::Newer(detail));
                }
                let seal = header.get(SEAL_KEY)?;
                let opened = seal.and_then(|seal| RowKind::Header.open(sealer, &[], seal.value()));
                opened.ok_or(LoadError::WrongKey)?.by_first_key
            }
        }
    };
    // So that reading finds every table.
    drop((writing.open_table(SESSIONS)?, writing.open_table(EVENTS)?, writing.open_table(STATES)?));
    writing.commit()?;
    Ok(is_current)
}

/// Writes the row that shows at the next start whether the keys are the right ones.
fn write_seal(writing: &WriteTransaction, sealer: &RecordSealer) -> Result<(), DatabaseFailure> {
    let sealed = RowKind::Header.seal(sealer, &[], b"").ok_or_else(no_randomness)?;
    writing.open_table(HEADER)?.insert(SEAL_KEY, sealed.as_slice())?;
    Ok(())
}

fn no_randomness() -> DatabaseFailure {
    DatabaseFailure("the operating system gives no random bytes".to_owned())
}

/// What was found besides the rows that are in memory now.
#[derive(Default)]
pub(crate) struct LoadOutcome {
    /// The rows that are sealed with an older key.
    pub(crate) outdated: DirtyRows,
    /// The rows that nothing could be read from. They were removed.
    pub(crate) damaged: usize,
}

/// Reads all rows into memory. `slack` is added to the recorded times of use, which are that much behind.
pub(crate) fn load(
    database: &Database,
    sealer: &RecordSealer,
    memory: &StoreMemory,
    slack: std::time::Duration,
) -> Result<LoadOutcome, LoadError> {
    let mut outcome = LoadOutcome::default();
    let writing = database.begin_write()?;
    let with_slack = |used_at: Timestamp| used_at.plus(slack);
    load_table(writing.open_table(SESSIONS)?, &mut outcome, |key, sealed, outdated| {
        let Some(row) = RowKind::Session.open(sealer, key, sealed) else {
            return Err(RecordError::Malformed);
        };
        let (record, used_at) = read_session(&row.plain)?;
        if !row.by_first_key {
            outdated.sessions.insert(record.id);
        }
        memory.sessions.restore(record, with_slack(used_at));
        Ok(())
    })?;
    load_table(writing.open_table(STATES)?, &mut outcome, |key, sealed, outdated| {
        let Some(row) = RowKind::State.open(sealer, key, sealed) else { return Err(RecordError::Malformed) };
        let mut snapshot = read_state(&row.plain)?;
        snapshot.used_at = with_slack(snapshot.used_at);
        if !row.by_first_key {
            outdated.states.insert(snapshot.record.handle);
        }
        memory.states.restore(snapshot);
        Ok(())
    })?;
    load_table(writing.open_table(EVENTS)?, &mut outcome, |serial, sealed, outdated| {
        let key = serial.to_le_bytes();
        let Some(row) = RowKind::Event.open(sealer, &key, sealed) else { return Err(RecordError::Malformed) };
        let logged = LoggedEvent::from_bytes(&row.plain)?;
        if !row.by_first_key {
            outdated.events.insert(serial, logged.session);
        }
        memory.events.restore(serial, logged);
        Ok(())
    })?;
    writing.commit()?;
    Ok(outcome)
}

/// Reads the rows of one table, and removes those that nothing can be read from.
fn load_table<K: redb::Key + 'static>(
    mut table: redb::Table<'_, K, &'static [u8]>,
    outcome: &mut LoadOutcome,
    mut read: impl for<'k> FnMut(K::SelfType<'k>, &[u8], &mut DirtyRows) -> Result<(), RecordError>,
) -> Result<(), LoadError> {
    let mut newer = None;
    table.retain(|key, sealed| match read(key, sealed, &mut outcome.outdated) {
        Ok(()) => true,
        Err(error @ RecordError::Newer(_)) => {
            newer.get_or_insert(error);
            true
        }
        Err(_) => {
            outcome.damaged += 1;
            false
        }
    })?;
    newer.map_or(Ok(()), |error| Err(LoadError::Newer(error.to_string())))
}

/// Writes the rows as they are in memory now, in one transaction that survives a crash of the machine.
pub(crate) fn write(
    database: &Database,
    sealer: &RecordSealer,
    memory: &StoreMemory,
    dirty: &DirtyRows,
) -> Result<(), DatabaseFailure> {
    let writing = database.begin_write()?;
    if dirty.header {
        write_seal(&writing, sealer)?;
    }
    let mut sessions = writing.open_table(SESSIONS)?;
    for id in &dirty.sessions {
        let key = id.row_key();
        match memory.sessions.snapshot(*id) {
            Some((record, used_at)) => {
                let plain = write_session(&record, used_at);
                let sealed = RowKind::Session.seal(sealer, &key, &plain).ok_or_else(no_randomness)?;
                sessions.insert(&key, sealed.as_slice())?;
            }
            None => drop(sessions.remove(&key)?),
        }
    }
    drop(sessions);
    let mut events = writing.open_table(EVENTS)?;
    for (serial, session) in &dirty.events {
        match memory.events.snapshot(*session, *serial) {
            Some(logged) => {
                let key = serial.to_le_bytes();
                let plain = logged.to_bytes();
                let sealed = RowKind::Event.seal(sealer, &key, &plain).ok_or_else(no_randomness)?;
                events.insert(serial, sealed.as_slice())?;
            }
            None => drop(events.remove(serial)?),
        }
    }
    drop(events);
    let mut states = writing.open_table(STATES)?;
    for handle in &dirty.states {
        let key = handle.row_key();
        match memory.states.snapshot(*handle) {
            Some(snapshot) => {
                let plain = snapshot.to_json();
                let sealed = RowKind::State.seal(sealer, &key, plain.as_bytes()).ok_or_else(no_randomness)?;
                states.insert(&key, sealed.as_slice())?;
            }
            None => drop(states.remove(&key)?),
        }
    }
    drop(states);
    writing.commit()?;
    Ok(())
}
