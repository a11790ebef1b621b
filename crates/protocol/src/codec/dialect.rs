use crate::revision::Revision;

use super::{r2024_11_05, r2025_03_26, r2025_06_18, r2025_11_25, r2026_07_28};

/// The features of one protocol revision.
///
/// Each flag is one feature that some revision lacks. Each type's writer consults the flags, and omits, renames or
/// replaces what the reader would not understand.
#[derive(Debug, PartialEq, Eq)]
pub struct Dialect {
    pub(super) revision: Revision,
    /// Tools have `annotations`.
    pub tool_annotations: bool,
    /// Entities, arguments and implementations have a `title`.
    pub title: bool,
    /// Entities and implementations have `icons`.
    pub icons: bool,
    /// Implementations have `description` and `websiteUrl`.
    pub implementation_details: bool,
    /// Entities, contents and content blocks have `_meta`; results have it always.
    pub entity_meta: bool,
    /// Annotations have `lastModified`.
    pub last_modified: bool,
    /// Content may be `audio`.
    pub audio: bool,
    /// Content may be a `resource_link`.
    pub resource_link: bool,
    /// Tools have `outputSchema` and results `structuredContent`.
    pub structured: bool,
    /// Structured content may be any JSON value, not only an object.
    pub structured_any: bool,
    /// Progress notifications have a `message`.
    pub progress_message: bool,
    /// Completion requests carry the arguments that are already resolved, as `context`.
    pub completion_context: bool,
    /// Servers declare `completions`.
    pub completions_flag: bool,
    /// Capabilities have `extensions`.
    pub extensions: bool,
    /// Servers may elicit input from the client's user.
    pub elicitation: bool,
    /// Elicitation has modes: forms and URLs.
    pub elicitation_modes: bool,
    /// An elicitation of mode `url` carries an `elicitationId`.
    pub elicitation_id: bool,
    /// Forms have titled choices, choices of several, and defaults that are not booleans.
    pub rich_forms: bool,
    /// Sampling has `tools`, tool content, and `content` as an array.
    pub sampling_tools: bool,
    /// Every result has a `resultType`.
    pub result_type: bool,
    /// Results of lists and reads have cache hints (`ttlMs` and `cacheScope`).
    pub cache_hints: bool,
    /// Every result names the server in its `_meta`.
    pub server_info: bool,
}

impl Dialect {
    /// Every dialect, oldest first.
    pub const ALL: [&'static Self; 5] = [
        &r2024_11_05::DIALECT,
        &r2025_03_26::DIALECT,
        &r2025_06_18::DIALECT,
        &r2025_11_25::DIALECT,
        &r2026_07_28::DIALECT,
    ];

    /// The dialect of the newest revision, which has every feature.
    pub const NEWEST: &'static Self = &r2026_07_28::DIALECT;

    /// Returns the dialect of a revision.
    pub const fn of(revision: Revision) -> &'static Self {
        match revision {
            Revision::V2024_11_05 => &r2024_11_05::DIALECT,
            Revision::V2025_03_26 => &r2025_03_26::DIALECT,
            Revision::V2025_06_18 => &r2025_06_18::DIALECT,
            Revision::V2025_11_25 => &r2025_11_25::DIALECT,
            Revision::V2026_07_28 => &r2026_07_28::DIALECT,
        }
    }

    /// Returns the revision that the dialect belongs to.
    pub const fn revision(&self) -> Revision {
        self.revision
    }

    /// Reports whether a reader of this dialect understands every content block that another dialect can express.
    pub(super) fn supports_content_of(&self, other: &Self) -> bool {
        let features = |dialect: &Self| {
            let Self { title, icons, entity_meta, last_modified, audio, resource_link, .. } = *dialect;
            [title, icons, entity_meta, last_modified, audio, resource_link]
        };
        features(self).into_iter().zip(features(other)).all(|(ours, theirs)| ours || !theirs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_revision_has_its_own_dialect() {
        for (revision, dialect) in Revision::ALL.into_iter().zip(Dialect::ALL) {
            assert_eq!(Dialect::of(revision), dialect);
            assert_eq!(dialect.revision(), revision);
        }
    }

    #[test]
    fn revisions_with_equal_features_share_content() {
        let understands = |reader, maker| Dialect::of(reader).supports_content_of(Dialect::of(maker));
        for (reader, maker, expected) in [
            (Revision::V2025_11_25, Revision::V2026_07_28, true),
            (Revision::V2026_07_28, Revision::V2024_11_05, true),
            (Revision::V2025_06_18, Revision::V2025_11_25, false),
            (Revision::V2025_03_26, Revision::V2025_06_18, false),
            (Revision::V2024_11_05, Revision::V2025_03_26, false),
        ] {
            assert_eq!(understands(reader, maker), expected, "{reader} of {maker}");
        }
    }
}
