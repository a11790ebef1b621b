//! The description that every part has, for users and models that choose among parts.

/// Gives a part the setters that all parts have, and a `Debug` that shows what they set.
macro_rules! described {
    ($part:ident, $noun:literal) => {
        impl $part {
            #[doc = concat!("Sets what humans call the ", $noun, ".")]
            pub fn title(mut self, title: impl Into<String>) -> Self {
                self.described.title = Some(title.into());
                self
            }

            #[doc = concat!("Describes what the ", $noun, " is for, for the model to read.")]
            pub fn description(mut self, description: impl Into<String>) -> Self {
                self.described.description = Some(description.into());
                self
            }

            /// Adds an icon.
            pub fn icon(mut self, icon: trunkline_protocol::model::Icon) -> Self {
                self.described.icons.push(icon);
                self
            }

            #[doc = concat!("Adds a member to the `_meta` of the ", $noun, ".")]
            pub fn meta(mut self, key: impl Into<String>, value: impl serde::Serialize) -> Self {
                let (meta, problems) = (&mut self.described.meta, &mut self.problems);
                $crate::part::set_meta(meta, problems, key.into(), &value);
                self
            }
        }

        impl std::fmt::Debug for $part {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($part)).field("described", &self.described).finish_non_exhaustive()
            }
        }
    };
}

/// Gives a part that is read the setters that all such parts have.
macro_rules! readable {
    ($part:ident, $noun:literal) => {
        impl $part {
            #[doc = concat!("Sets the media type of the ", $noun, ".")]
            pub fn mime(mut self, mime_type: impl Into<String>) -> Self {
                self.described.mime_type = Some(mime_type.into());
                self
            }

            #[doc = concat!("Hints about the use of the ", $noun, ".")]
            pub fn annotations(mut self, annotations: trunkline_protocol::model::Annotations) -> Self {
                self.described.annotations = Some(annotations);
                self
            }

            /// Sets how long the content may be cached.
            pub fn cache(mut self, cache: trunkline_protocol::model::CacheHint) -> Self {
                self.cache = cache;
                self
            }
        }
    };
}

pub(crate) use {described, readable};
