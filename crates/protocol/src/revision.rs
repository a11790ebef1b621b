use std::fmt;

/// A revision of the protocol, oldest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Revision {
    /// 2024-11-05: HTTP+SSE.
    V2024_11_05,
    /// 2025-03-26: the first Streamable HTTP, batches.
    V2025_03_26,
    /// 2025-06-18: the version header, elicitation, structured output.
    V2025_06_18,
    /// 2025-11-25: polling streams, URL elicitation, tools in sampling.
    V2025_11_25,
    /// 2026-07-28: no handshake, no sessions; every request is self-contained.
    V2026_07_28,
}

/// How a revision treats the life of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Era {
    /// `initialize` opens a session that later requests belong to.
    Legacy,
    /// Every request carries its own version, capabilities and identity.
    Modern,
}

impl Era {
    /// Both eras, the older first.
    pub const ALL: [Self; 2] = [Self::Legacy, Self::Modern];
}

impl Revision {
    /// Every revision, oldest first.
    pub const ALL: [Self; 5] =
        [Self::V2024_11_05, Self::V2025_03_26, Self::V2025_06_18, Self::V2025_11_25, Self::V2026_07_28];

    /// The newest revision that `initialize` can negotiate.
    pub const NEWEST_LEGACY: Self = Self::V2025_11_25;

    /// The newest revision.
    pub const NEWEST: Self = Self::V2026_07_28;

    /// Returns the revision's name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    /// Reads a revision's name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|revision| revision.as_str() == name)
    }

    /// Returns the era that the revision belongs to.
    pub const fn era(self) -> Era {
        match self {
            Self::V2026_07_28 => Era::Modern,
            _ => Era::Legacy,
        }
    }

    /// Chooses the revision with which `initialize` is answered.
    ///
    /// A legacy revision that we know is taken as it is. Anything else, a modern revision included, is answered with the
    /// newest legacy one: the modern era cannot be negotiated by a handshake, and an unknown version is no reason to fail.
    ///
    /// See [Version Negotiation](https://modelcontextprotocol.io/specification/2025-11-25/basic/lifecycle#version-negotiation).
    pub fn negotiate(requested: &str) -> Self {
        match Self::parse(requested) {
            Some(revision) if revision.era() == Era::Legacy => revision,
            // A pre-release name that some SDKs still offer; its wire format is that of the first release.
            None if requested == "2024-10-07" => Self::V2024_11_05,
            _ => Self::NEWEST_LEGACY,
        }
    }

    /// Reports whether JSON-RPC batches are part of the revision.
    ///
    /// See [Batching](https://modelcontextprotocol.io/specification/2025-03-26/basic/index#batching).
    pub const fn has_batches(self) -> bool {
        matches!(self, Self::V2025_03_26)
    }

    /// Reports whether an error without a known id is written as `"id":null` rather than without an id.
    pub const fn writes_null_id(self) -> bool {
        matches!(self, Self::V2024_11_05 | Self::V2025_03_26 | Self::V2025_06_18)
    }

    /// Reports whether event streams open with an event that has an id and no data.
    ///
    /// See [Sending Messages to the Server](https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#sending-messages-to-the-server).
    pub const fn primes_streams(self) -> bool {
        matches!(self, Self::V2025_11_25)
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_revision_is_read_back_from_its_name() {
        for revision in Revision::ALL {
            assert_eq!(Revision::parse(revision.as_str()), Some(revision));
        }
    }

    #[test]
    fn negotiation_table() {
        for (requested, answer) in [
            ("2024-10-07", "2024-11-05"),
            ("2024-11-05", "2024-11-05"),
            ("2025-03-26", "2025-03-26"),
            ("2025-06-18", "2025-06-18"),
            ("2025-11-25", "2025-11-25"),
            ("2026-07-28", "2025-11-25"),
            ("2999-01-01", "2025-11-25"),
            ("", "2025-11-25"),
            ("latest", "2025-11-25"),
        ] {
            assert_eq!(Revision::negotiate(requested).as_str(), answer, "{requested}");
        }
    }
}
