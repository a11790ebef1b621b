//! A session that another client can continue, in another process or after a restart.

use std::fmt;

use http::HeaderValue;
use trunkline_protocol::codec::Dialect;
use trunkline_protocol::{Era, JsonWriter, RawJson, Revision};
use trunkline_transport::Secret;

use crate::client::ServerInfo;
use crate::connect::{ServerDescription, SupportedEras};
use crate::edge::legacy;

/// The version of the written form: the newest that this build reads, and the one that it writes.
const VERSION: u64 = 1;

/// A session of Streamable HTTP, with everything that another client needs to continue it.
///
/// [`Client::resumable_session`](crate::Client::resumable_session) returns it, and
/// [`ClientBuilder::resume`](crate::ClientBuilder::resume) continues it. Its id authenticates requests of the session, so
/// that the written form is as secret as a token.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use trunkline_client::{Client, ResumableSession};
///
/// let client = Client::connect("https://mcp.example.com/mcp").await?;
/// if let Some(session) = client.resumable_session() {
///     std::fs::write("session.json", session.to_json())?;
///     // Otherwise closing the client deletes the session at the server.
///     client.keep_session();
/// }
/// client.close().await;
///
/// let session = ResumableSession::from_json(&std::fs::read_to_string("session.json")?)?;
/// let client = Client::builder().resume(session).connect("https://mcp.example.com/mcp").await?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct ResumableSession {
    id: Secret,
    eras: SupportedEras,
    description: ServerDescription,
}

/// A written session cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ResumableSessionError {
    /// A newer build wrote it.
    #[error("the session has version {0} and this build reads up to version {VERSION}; use a newer build")]
    Newer(u64),
    /// It is not a session.
    #[error("the session is malformed")]
    Malformed,
}

impl ResumableSession {
    pub(crate) fn new(id: Secret, info: &ServerInfo) -> Self {
        let description = ServerDescription {
            revision: info.revision,
            capabilities: info.capabilities.clone(),
            identity: info.identity.clone(),
            instructions: info.instructions.clone(),
            lists_legacy: false,
        };
        Self { id, eras: info.eras, description }
    }

    /// Returns the negotiated protocol revision.
    pub fn revision(&self) -> Revision {
        self.description.revision
    }

    /// Returns the eras that the server supports, as far as the client that opened the session knew.
    pub(crate) fn eras(&self) -> SupportedEras {
        self.eras
    }

    pub(crate) fn description(&self) -> &ServerDescription {
        &self.description
    }

    /// Returns the id as a header; `None` if it cannot be one.
    pub(crate) fn id_header(&self) -> Option<HeaderValue> {
        let mut id = HeaderValue::from_bytes(self.id.expose().as_bytes()).ok()?;
        id.set_sensitive(true);
        Some(id)
    }

    /// Writes the session as JSON with a version. The text contains the session's id, which is a secret.
    pub fn to_json(&self) -> String {
        // The newest dialect has every field, so that nothing is lost.
        let (dialect, mut writer) = (Dialect::of(Revision::NEWEST), JsonWriter::with_capacity(512));
        writer.open_object();
        writer.plain_key("v");
        writer.unsigned(VERSION);
        writer.plain_key("session");
        writer.string(self.id.expose());
        if let Some(is_supported) = self.eras.supports(Era::Modern) {
            writer.plain_key("modern");
            writer.boolean(is_supported);
        }
        writer.plain_key("protocolVersion");
        writer.string(self.revision().as_str());
        writer.plain_key("capabilities");
        self.description.capabilities.write(dialect, &mut writer);
        if let Some(identity) = &self.description.identity {
            writer.plain_key("serverInfo");
            identity.write(dialect, &mut writer);
        }
        if let Some(instructions) = &self.description.instructions {
            writer.plain_key("instructions");
            writer.string(instructions);
        }
        writer.close_object();
        writer.into_string()
    }

    /// Reads a session of this version or an older one.
    ///
    /// # Errors
    /// A newer build wrote it, or it is not a session.
    pub fn from_json(text: &str) -> Result<Self, ResumableSessionError> {
        let malformed = || ResumableSessionError::Malformed;
        let raw = RawJson::parse(text.to_owned()).map_err(|_| malformed())?;
        let members = raw.members().map_err(|_| malformed())?;
        match members.get("v").and_then(|version| version.get::<u64>().ok()) {
            Some(1..=VERSION) => {}
            Some(newer) if newer > VERSION => return Err(ResumableSessionError::Newer(newer)),
            _ => return Err(malformed()),
        }
        let description = legacy::read_initialized(&raw).map_err(|_| malformed())?;
        let eras = SupportedEras::default().with(Era::Legacy, true);
        let eras = match members.get("modern").and_then(|modern| modern.get::<bool>().ok()) {
            Some(is_supported) => eras.with(Era::Modern, is_supported),
            None => eras,
        };
        let id = members.text("session").filter(|id| is_valid_id(id.as_bytes())).ok_or_else(malformed)?;
        Ok(Self { id: Secret::new(&*id), eras, description })
    }
}

/// The longest session id that is accepted.
pub(crate) const MAX_SESSION_ID_BYTES: usize = 1024;

/// Reports whether a session id is visible ASCII of a reasonable length.
pub(crate) fn is_valid_id(id: &[u8]) -> bool {
    (1..=MAX_SESSION_ID_BYTES).contains(&id.len()) && id.iter().all(u8::is_ascii_graphic)
}

/// Shows the server and not the id.
impl fmt::Debug for ResumableSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResumableSession").field("description", &self.description).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text() -> String {
        r#"{"v":1,"session":"sentinel","modern":false,"protocolVersion":"2025-06-18","capabilities":{"logging":{},"completions":{},"resources":{"subscribe":true},"x":{"y":1}},"serverInfo":{"name":"n","title":"t","version":"3"},"instructions":"a \"b\""}"#.to_owned()
    }

    #[test]
    fn session_is_read_back_as_it_was_written() {
        let session = ResumableSession::from_json(&text()).unwrap();
        let again = ResumableSession::from_json(&session.to_json()).unwrap();
        for read in [&session, &again] {
            let description = read.description();
            assert_eq!(description.revision, Revision::V2025_06_18);
            assert!(description.capabilities.logging && description.capabilities.completions);
            assert!(description.capabilities.resources.is_some_and(|resources| resources.subscribe));
            assert_eq!(description.instructions.as_deref(), Some("a \"b\""));
            assert_eq!(description.identity.as_ref().unwrap().name, "n");
            assert_eq!(read.eras(), SupportedEras::only(Era::Legacy));
            assert_eq!(read.id_header().unwrap(), "sentinel");
        }
        assert_eq!(session.to_json(), again.to_json());
        assert!(!format!("{session:?}").contains("sentinel"));
    }

    #[test]
    fn session_of_a_newer_build_is_refused_with_its_version() {
        let newer = text().replacen("\"v\":1", "\"v\":7", 1);
        let error = ResumableSession::from_json(&newer).unwrap_err();
        assert_eq!(error, ResumableSessionError::Newer(7));
        assert!(error.to_string().contains("newer build"), "{error}");
        for (from, to) in [
            ("\"v\":1", "\"v\":0"),
            ("\"v\":1", "\"w\":1"),
            ("sentinel", ""),
            ("sentinel", "a b"),
            ("2025-06-18", "2026-07-28"),
            ("\"capabilities\":{", "\"capabilities\":7,\"c\":{"),
        ] {
            let text = text().replacen(from, to, 1);
            assert_eq!(
                ResumableSession::from_json(&text).unwrap_err(),
                ResumableSessionError::Malformed,
                "{text}"
            );
        }
    }
}
