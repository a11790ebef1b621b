use std::borrow::Cow;
use std::ops::Deref;

use bytestring::ByteString;

/// A key of an object.
pub(crate) enum ObjectKey<'a> {
    /// An expected key, with its index.
    Known(&'static str, usize),
    /// Any other key, or an expected one in an unusual spelling, such as with escapes.
    Other(Cow<'a, str>),
}

impl<'a> ObjectKey<'a> {
    /// Returns the key as a shared string; a known key needs no reference count.
    #[inline]
    pub(crate) fn share(self, message: &ByteString) -> ByteString {
        match self {
            Self::Known(key, _) => ByteString::from_static(key),
            Self::Other(Cow::Borrowed(key)) => message.slice_ref(key),
            Self::Other(Cow::Owned(key)) => key.into(),
        }
    }

    /// Returns the index of the expected key that it equals, however it is escaped; a recognized key is not compared
    /// again. `expected` must be the list that the key was read with.
    #[inline]
    pub(crate) fn among(&self, expected: &[&str]) -> Option<usize> {
        match self {
            Self::Known(_, index) => Some(*index),
            Self::Other(key) => expected.iter().position(|expected| expected == key),
        }
    }

    /// Returns the decoded key.
    #[inline]
    pub(crate) fn read(self) -> Cow<'a, str> {
        match self {
            Self::Known(key, _) => Cow::Borrowed(key),
            Self::Other(key) => key,
        }
    }
}

impl Deref for ObjectKey<'_> {
    type Target = str;

    #[inline]
    fn deref(&self) -> &str {
        match self {
            Self::Known(key, _) => key,
            Self::Other(key) => key,
        }
    }
}
