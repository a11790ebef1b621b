//! The table form in which most types of the model are declared.

/// Declares an object type from a table of its members, and generates how it is read and written.
///
/// A row is `field: Type => "wireName"`. The type decides whether the member is required (see [`super::field`]); `if flag` at
/// the end of a row writes the member only in dialects that have the flag. `+ meta` after the name gives the object a
/// `_meta`, and `via method` has it replaced by what the method makes of it for the dialect before it is written. Every object
/// has `rest`, the members that it does not know.
macro_rules! object {
    (
        $(#[$attribute:meta])*
        struct $name:ident $(+ $meta:ident)? $(via $prepare:ident)? {
            $($(#[$doc:meta])* $field:ident: $type:ty => $wire:literal $(if $flag:ident)?,)*
        }
    ) => {
        $(#[$attribute])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name {
            $($(#[$doc])* pub $field: $type,)*
            $(
                /// The `_meta` of the wire format.
                pub $meta: Option<$crate::json::JsonObject>,
            )?
            /// Members that no revision defines, in order.
            pub rest: $crate::json::JsonObject,
        }

        impl $name {
            /// Reads the object.
            ///
            /// # Errors
            /// A member is missing or has the wrong type, or two members have one name.
            pub fn read(raw: &$crate::json::RawJson) -> Result<Self, $crate::model::MalformedModel> {
                Self::from_reader($crate::model::field::ObjectReader::open(raw)?)
            }

            /// Writes the object in a dialect.
            pub fn write(&self, dialect: &$crate::codec::Dialect, writer: &mut $crate::json::JsonWriter) {
                let this = self;
                $(
                    let prepared = this.$prepare(dialect);
                    let this: &Self = &prepared;
                )?
                this.write_as(None, dialect, writer);
            }

            pub(super) fn from_reader(
                mut reader: $crate::model::field::ObjectReader,
            ) -> Result<Self, $crate::model::MalformedModel> {
                Ok(Self {
                    $($field: reader.take($wire)?,)*
                    $($meta: reader.take("_meta")?,)?
                    rest: reader.0,
                })
            }

            /// Writes the object, as one of several kinds if `kind` is given.
            pub(super) fn write_as(
                &self,
                kind: Option<&'static str>,
                dialect: &$crate::codec::Dialect,
                writer: &mut $crate::json::JsonWriter,
            ) {
                const TYPED: &[&str] = &[$($wire,)* $(object!(@wire $meta),)? "type"];
                writer.open_object();
                let mut typed = TYPED;
                match kind {
                    Some(kind) => {
                        writer.plain_key("type");
                        writer.string(kind);
                    }
                    // Without a kind, `type` is a name like any other.
                    None => typed = TYPED.split_last().map_or(TYPED, |(_, names)| names),
                }
                $(if true $(&& dialect.$flag)? {
                    $crate::model::field::ModelField::write_field(&self.$field, $wire, dialect, writer);
                })*
                $($crate::model::field::write_entity_meta(self.$meta.as_ref(), dialect, writer);)?
                $crate::model::field::write_rest(&self.rest, typed, writer);
                writer.close_object();
            }
        }

        impl $crate::model::field::ModelValue for $name {
            fn read_value(raw: &$crate::json::RawJson) -> Result<Self, $crate::model::MalformedModel> {
                Self::read(raw)
            }

            fn write_value(&self, dialect: &$crate::codec::Dialect, writer: &mut $crate::json::JsonWriter) {
                self.write(dialect, writer);
            }
        }
    };
    (@wire $meta:ident) => { "_meta" };
}
