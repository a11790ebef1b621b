//! The part of a session that another node would need.

use std::collections::BTreeSet;

use trunkline_protocol::{LoggingLevel, RawJson, Revision};

use crate::{Principal, SessionId, SessionLimits, Timestamp};

/// The record of a session, small enough for a shared store.
///
/// Open streams and running calls belong to the node that has them and are not part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionRecord {
    /// The session's id.
    pub id: SessionId,
    /// The only principal that the session is ever returned to.
    pub principal: Principal,
    /// The revision that `initialize` negotiated.
    pub revision: Revision,
    /// The client's capabilities as it sent them.
    pub capabilities: RawJson,
    /// The client's `clientInfo` as it sent it, where it did.
    pub client: Option<RawJson>,
    /// The level set by `logging/setLevel`, if it was.
    pub log_level: Option<LoggingLevel>,
    /// The URIs of the resources that the client subscribed to.
    pub subscriptions: BTreeSet<String>,
    /// When the session was opened; its absolute age counts from here.
    pub created: Timestamp,
}

impl SessionRecord {
    /// Returns the bytes of JSON in the record, which [`SessionLimits::record_bytes`](crate::SessionLimits::record_bytes)
    /// bounds.
    pub fn raw_bytes(&self) -> usize {
        self.capabilities.as_str().len() + self.client.as_ref().map_or(0, |client| client.as_str().len())
    }

    /// Returns the bytes of the subscribed URIs, which
    /// [`SessionLimits::subscription_bytes`](crate::SessionLimits::subscription_bytes) bounds.
    pub fn subscription_bytes(&self) -> usize {
        self.subscriptions.iter().map(String::len).sum()
    }

    /// Reports whether the record is within the limits on one record; if not, a store returns
    /// [`StoreError::TooLarge`](crate::StoreError::TooLarge).
    pub fn fits(&self, limits: &SessionLimits) -> bool {
        self.raw_bytes() <= limits.record_bytes && self.subscription_bytes() <= limits.subscription_bytes
    }

    /// Copies the record's JSON out of the message that it came in.
    ///
    /// A [`RawJson`] keeps the whole buffer of its message alive, which may be a hundred times its own size. An
    /// in-memory store keeps detached records.
    #[must_use]
    pub fn into_owned_buffers(mut self) -> Self {
        self.capabilities = to_owned_buffer(self.capabilities);
        self.client = self.client.map(to_owned_buffer);
        self
    }
}

fn to_owned_buffer(raw: RawJson) -> RawJson {
    // The text is a valid JSON value, so parsing it again cannot fail; if it did, sharing the buffer is still
    // correct.
    RawJson::parse(raw.as_str().to_owned()).unwrap_or(raw)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn detached_record_is_equal_and_shares_no_buffer_with_the_message() {
        let message = format!(r#"{{"a":{{"roots":{{}}}},"b":{{"name":"x"}},"c":"{}"}}"#, "y".repeat(4096));
        let message = RawJson::parse(message).unwrap();
        let members = message.members().unwrap();
        let record = SessionRecord {
            id: SessionId::random(),
            principal: Principal::Anonymous,
            revision: Revision::NEWEST_LEGACY,
            capabilities: members.get("a").unwrap().clone(),
            client: members.get("b").cloned(),
            log_level: None,
            subscriptions: BTreeSet::new(),
            created: Timestamp(0),
        };
        let detached = record.clone().into_owned_buffers();
        assert_eq!(detached, record);
        assert_eq!(detached.raw_bytes(), r#"{"roots":{}}{"name":"x"}"#.len());
        let inside = message.as_str().as_bytes().as_ptr_range();
        assert!(inside.contains(&record.capabilities.as_str().as_ptr()));
        assert!(!inside.contains(&detached.capabilities.as_str().as_ptr()));
        assert!(!inside.contains(&detached.client.unwrap().as_str().as_ptr()));
    }
}
