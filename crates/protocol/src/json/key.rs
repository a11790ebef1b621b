use std::borrow::Cow;
use std::ops::Deref;

use bytestring::ByteString;

/// A key of an object.
pub(crate) enum Key<'a> {
    /// One of those that were expected.
    Known(&'static str),
    /// Any other, or one that is written in another way than programs do.
    Other(Cow<'a, str>),
}

impl<'a> Key<'a> {
    /// Returns the key as a shared string; one that is known need not count a reference.
    #[inline]
    pub(crate) fn share(self, message: &ByteString) -> ByteString {
        match self {
            Self::Known(key) => ByteString::from_static(key),
            Self::Other(Cow::Borrowed(key)) => message.slice_ref(key),
            Self::Other(Cow::Owned(key)) => key.into(),
        }
    }

    /// Returns the key as what was read.
    #[inline]
    pub(crate) fn read(self) -> Cow<'a, str> {
        match self {
            Self::Known(key) => Cow::Borrowed(key),
            Self::Other(key) => key,
        }
    }
}

impl Deref for Key<'_> {
    type Target = str;

    #[inline]
    fn deref(&self) -> &str {
        match self {
            Self::Known(key) => key,
            Self::Other(key) => key,
        }
    }
}
