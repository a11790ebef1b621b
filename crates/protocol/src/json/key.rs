use std::borrow::Cow;
use std::ops::Deref;

use bytestring::ByteString;

/// A key of an object.
pub(crate) enum ObjectKey<'a> {
    /// One of those that were expected, and which.
    Known(&'static str, usize),
    /// Any other, or one that is written in another way than programs do.
    Other(Cow<'a, str>),
}

impl<'a> ObjectKey<'a> {
    /// Returns the key as a shared string; one that is known need not count a reference.
    #[inline]
    pub(crate) fn share(self, message: &ByteString) -> ByteString {
        match self {
            Self::Known(key, _) => ByteString::from_static(key),
            Self::Other(Cow::Borrowed(key)) => message.slice_ref(key),
            Self::Other(Cow::Owned(key)) => key.into(),
        }
    }

    /// Returns which of those that were expected it is, however it is written: where it is known already, nothing is compared.
    /// They have to be the very ones that it was read with.
    #[inline]
    pub(crate) fn among(&self, expected: &[&str]) -> Option<usize> {
        match self {
            Self::Known(_, index) => Some(*index),
            Self::Other(key) => expected.iter().position(|expected| expected == key),
        }
    }

    /// Returns the key as what was read.
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
