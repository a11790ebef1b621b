//! The stored form of records: JSON with a version, for every store that keeps records outside of this process.

use std::collections::BTreeSet;

use thiserror::Error;
use trunkline_protocol::{JsonObject, JsonWriter, LoggingLevel, RawJson, Revision};

use crate::{
    Principal, SessionId, SessionRecord, StateHandle, StateLifetime, StateRecord, StateSnapshot, Timestamp,
};

/// The newest version that this build reads, and the one that it writes.
const VERSION: u64 = 1;

/// A record cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RecordError {
    /// A newer build wrote it.
    #[error("the record has version {0} and this build reads up to version {VERSION}; use a newer build")]
    Newer(u64),
    /// It is not a record.
    #[error("the record is malformed")]
    Malformed,
}

impl SessionRecord {
    /// Writes the record as JSON with a version.
    pub fn to_json(&self) -> String {
        let mut writer = JsonWriter::with_capacity(128 + self.raw_bytes() + self.subscription_bytes());
        writer.open_object();
        writer.plain_key("v");
        writer.unsigned(VERSION);
        writer.plain_key("id");
        writer.string(&self.id.to_string());
        write_principal(&mut writer, &self.principal);
        writer.plain_key("revision");
        writer.string(self.revision.as_str());
        writer.member("capabilities", &self.capabilities);
        if let Some(client) = &self.client {
            writer.member("client", client);
        }
        if let Some(level) = self.log_level {
            writer.plain_key("logLevel");
            writer.string(level.as_str());
        }
        if !self.subscriptions.is_empty() {
            writer.plain_key("subscriptions");
            writer.open_array();
            self.subscriptions.iter().for_each(|uri| writer.string(uri));
            writer.close_array();
        }
        writer.plain_key("created");
        writer.unsigned(self.created.0);
        writer.close_object();
        writer.into_string()
    }

    /// Reads a record of this version or an older one.
    ///
    /// # Errors
    /// A newer build wrote it, or it is not a record.
    pub fn from_json(text: &str) -> Result<Self, RecordError> {
        let members = versioned_members(text)?;
        let optional_text = |key: &str| members.get(key).and_then(RawJson::to_text);
        let read = || {
            let log_level = match optional_text("logLevel") {
                None => None,
                Some(level) => Some(LoggingLevel::parse(&level)?),
            };
            let subscriptions = match members.get("subscriptions") {
                None => BTreeSet::new(),
                Some(uris) => uris.get::<BTreeSet<String>>().ok()?,
            };
            Some(Self {
                id: SessionId::parse(optional_text("id")?.as_bytes())?,
                principal: read_principal(&members)?,
                revision: Revision::parse(&optional_text("revision")?)?,
                capabilities: members.get("capabilities")?.clone(),
                client: members.get("client").cloned(),
                log_level,
                subscriptions,
                created: Timestamp(members.get("created")?.get().ok()?),
            })
        };
        read().map(Self::into_owned_buffers).ok_or(RecordError::Malformed)
    }
}

impl StateSnapshot {
    /// Writes the state as JSON with a version.
    pub fn to_json(&self) -> String {
        let mut writer = JsonWriter::with_capacity(160 + self.record.value.as_str().len());
        writer.open_object();
        writer.plain_key("v");
        writer.unsigned(VERSION);
        writer.plain_key("handle");
        writer.string(&self.record.handle.to_string());
        write_principal(&mut writer, &self.record.principal);
        writer.plain_key("ofSession");
        writer.boolean(self.record.lifetime == StateLifetime::Session);
        for (key, number) in
            [("version", self.version), ("created", self.created.0), ("used", self.used_at.0)]
        {
            writer.plain_key(key);
            writer.unsigned(number);
        }
        writer.member("value", &self.record.value);
        writer.close_object();
        writer.into_string()
    }

    /// Reads a state of this version or an older one.
    ///
    /// # Errors
    /// A newer build wrote it, or it is not a state.
    pub fn from_json(text: &str) -> Result<Self, RecordError> {
        let members = versioned_members(text)?;
        let number = |key: &str| members.get(key)?.get::<u64>().ok();
        let read = || {
            let lifetime = match members.get("ofSession")?.get::<bool>().ok()? {
                true => StateLifetime::Session,
                false => StateLifetime::Idle,
            };
            let record = StateRecord {
                handle: StateHandle::parse(&members.text("handle")?)?,
                principal: read_principal(&members)?,
                lifetime,
                value: members.get("value")?.to_owned_buffer(),
            };
            let (created, used_at) = (Timestamp(number("created")?), Timestamp(number("used")?));
            Some(Self { record, version: number("version")?, created, used_at })
        };
        read().ok_or(RecordError::Malformed)
    }
}

fn versioned_members(text: &str) -> Result<JsonObject, RecordError> {
    let raw = RawJson::parse(text.to_owned()).map_err(|_| RecordError::Malformed)?;
    let members = raw.shallow_members().map_err(|_| RecordError::Malformed)?;
    match members.get("v").and_then(|version| version.get::<u64>().ok()) {
        Some(1..=VERSION) => Ok(members),
        Some(newer) if newer > VERSION => Err(RecordError::Newer(newer)),
        _ => Err(RecordError::Malformed),
    }
}

/// Writes the kind of a principal, and its name where it has one.
fn write_principal(writer: &mut JsonWriter, principal: &Principal) {
    let (kind, name) = match principal {
        Principal::Anonymous => ("anonymous", None),
        Principal::Process => ("process", None),
        Principal::Named(name) => ("named", Some(name)),
    };
    writer.plain_key("principal");
    writer.string(kind);
    if let Some(name) = name {
        writer.plain_key("name");
        writer.string(name);
    }
}

fn read_principal(members: &JsonObject) -> Option<Principal> {
    match members.text("principal").as_deref()? {
        "anonymous" => Some(Principal::Anonymous),
        "process" => Some(Principal::Process),
        "named" => Some(Principal::Named((*members.text("name")?).into())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn record() -> SessionRecord {
        SessionRecord {
            id: SessionId::random(),
            principal: Principal::Named("https://issuer ann\"".into()),
            revision: Revision::V2025_03_26,
            capabilities: RawJson::parse(r#"{"roots":{}}"#).unwrap(),
            client: Some(RawJson::parse(r#"{"name":"\u0041","v":9}"#).unwrap()),
            log_level: Some(LoggingLevel::Alert),
            subscriptions: ["a:\n\"b\"", "c:d"].map(str::to_owned).into(),
            created: Timestamp(u64::MAX),
        }
    }

    #[test]
    fn session_record_is_read_back_as_it_was_written() {
        let bare = SessionRecord {
            principal: Principal::Anonymous,
            client: None,
            log_level: None,
            subscriptions: BTreeSet::new(),
            ..record()
        };
        let impostor = SessionRecord { principal: Principal::Named("process".into()), ..record() };
        let process = SessionRecord { principal: Principal::Process, ..record() };
        for record in [record(), bare, impostor, process] {
            assert_eq!(SessionRecord::from_json(&record.to_json()), Ok(record));
        }
    }

    #[test]
    fn state_is_read_back_as_it_was_written() {
        for (principal, lifetime) in [
            (Principal::Process, StateLifetime::Idle),
            (Principal::Named("ann".into()), StateLifetime::Session),
        ] {
            let value = RawJson::parse(r#"{"v":7,"a":[1,"x"]}"#).unwrap();
            let record = StateRecord { handle: StateHandle::random(), principal, lifetime, value };
            let (created, used_at) = (Timestamp(5), Timestamp(u64::MAX));
            let snapshot = StateSnapshot { record, version: 3, created, used_at };
            assert_eq!(StateSnapshot::from_json(&snapshot.to_json()), Ok(snapshot.clone()));
            let newer = snapshot.to_json().replacen("\"v\":1", "\"v\":9", 1);
            assert_eq!(StateSnapshot::from_json(&newer), Err(RecordError::Newer(9)));
        }
    }

    #[test]
    fn session_record_of_a_newer_build_is_refused_with_its_version() {
        let newer = record().to_json().replacen("\"v\":1", "\"v\":2,\"more\":true", 1);
        let error = SessionRecord::from_json(&newer).unwrap_err();
        assert_eq!(error, RecordError::Newer(2));
        assert!(error.to_string().contains("version 2") && error.to_string().contains("newer build"));
        for other in ["\"v\":0", "\"v\":\"1\"", "\"w\":1", "\"v\":-1"] {
            let text = record().to_json().replacen("\"v\":1", other, 1);
            assert_eq!(SessionRecord::from_json(&text), Err(RecordError::Malformed), "{other}");
        }
    }

    proptest! {
        #[test]
        fn damaged_session_record_is_an_error_or_another_record(at in 0..200_usize, byte in 32..127_u8) {
            let mut text = record().to_json().into_bytes();
            let at = at % text.len();
            text[at] = byte;
            let _ = SessionRecord::from_json(&String::from_utf8(text).unwrap());
        }
    }
}
