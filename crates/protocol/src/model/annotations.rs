use crate::codec::Dialect;
use crate::json::{JsonWriter, RawJson};

use super::MalformedModel;
use super::field::ModelValue;

/// The sender or the intended reader of content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Role {
    /// The human.
    #[default]
    User,
    /// The model.
    Assistant,
}

impl Role {
    /// Returns the role's name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
        }
    }

    /// Reads a role's name.
    pub fn parse(name: &str) -> Option<Self> {
        [Self::User, Self::Assistant].into_iter().find(|role| role.as_str() == name)
    }
}

impl ModelValue for Role {
    fn read_value(raw: &RawJson) -> Result<Self, MalformedModel> {
        let role = raw.as_text().and_then(|name| Self::parse(&name));
        role.ok_or_else(|| MalformedModel::new("must be \"user\" or \"assistant\""))
    }

    fn write_value(&self, _: &Dialect, writer: &mut JsonWriter) {
        writer.string(self.as_str());
    }
}

object! {
    /// Hints about a piece of content or a resource.
    #[derive(Default)]
    struct Annotations {
        /// The intended readers; empty means every reader.
        audience: Vec<Role> => "audience",
        /// How important it is, from 0 to 1.
        priority: Option<f64> => "priority",
        /// When it was last changed, in ISO 8601.
        last_modified: Option<String> => "lastModified" if last_modified,
    }
}

object! {
    /// Hints about a tool, which a client must not rely on unless it trusts the server.
    #[derive(Default)]
    struct ToolAnnotations {
        /// The display name.
        title: Option<String> => "title",
        /// The tool changes nothing. Taken as false if absent.
        read_only: Option<bool> => "readOnlyHint",
        /// The tool may destroy something. Taken as true if absent.
        destructive: Option<bool> => "destructiveHint",
        /// Calling the tool twice does no more than calling it once. Taken as false if absent.
        idempotent: Option<bool> => "idempotentHint",
        /// The tool interacts with entities outside of the server. Taken as true if absent.
        open_world: Option<bool> => "openWorldHint",
    }
}

impl ToolAnnotations {
    /// Returns the hints with fallbacks: if one is absent, its name without `Hint` counts, which some servers write.
    #[must_use]
    pub fn with_fallback_hints(&self) -> Self {
        let short = |name: &str| self.rest.get(name).and_then(|raw| raw.get::<bool>().ok());
        let mut meant = self.clone();
        for (hint, name) in [
            (&mut meant.read_only, "readOnly"),
            (&mut meant.destructive, "destructive"),
            (&mut meant.idempotent, "idempotent"),
            (&mut meant.open_world, "openWorld"),
        ] {
            *hint = hint.or_else(|| short(name));
        }
        meant
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::RawJson;

    #[test]
    fn annotation_hints_without_suffix_are_a_fallback() {
        let raw = r#"{"readOnly":true,"destructiveHint":false,"destructive":true,"openWorld":"yes"}"#;
        let hints = ToolAnnotations::read(&RawJson::parse(raw.to_owned()).unwrap()).unwrap();
        let meant = hints.with_fallback_hints();
        assert_eq!((hints.read_only, meant.read_only), (None, Some(true)));
        assert_eq!((meant.destructive, meant.idempotent, meant.open_world), (Some(false), None, None));
    }
}
