//! The outer form of the file: what it is, and how its content is protected.

use std::io;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use zeroize::Zeroizing;

use super::error::TokenFileError;
use super::key::{NONCE_BYTES, StoreKey};
use super::replace;

/// The bytes that the file of a store may have.
pub const MAX_STORE_BYTES: usize = 32 << 20;

const FORMAT: &str = "trunkline token store";
const VERSION: u64 = 1;

/// Is sealed with the content, so that what was sealed for another purpose does not open.
const SEALED_HEADER: &[u8] = b"trunkline token store 1";

#[derive(Serialize, Deserialize)]
struct StoreEnvelope<'a> {
    format: String,
    version: u64,
    /// The content as it is.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    plain: Option<&'a RawValue>,
    /// The content as it is sealed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sealed: Option<SealedContent>,
}

#[derive(Serialize, Deserialize)]
struct SealedContent {
    nonce: String,
    text: String,
}

/// Reads the content; `None` if there is no file.
pub(super) fn read(path: &Path, key: &StoreKey) -> Result<Option<Zeroizing<Vec<u8>>>, TokenFileError> {
    let limit = MAX_STORE_BYTES as u64 + 1;
    let bytes = match replace::read_private(path, limit) {
        Ok(Some(bytes)) => bytes,
        Ok(None) => return Err(TokenFileError::Exposed(path.to_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(TokenFileError::at(path)(error)),
    };
    if bytes.len() > MAX_STORE_BYTES {
        return Err(TokenFileError::TooLarge(path.to_owned()));
    }
    let foreign = || TokenFileError::Foreign(path.to_owned());
    let envelope: StoreEnvelope<'_> = serde_json::from_slice(&bytes).map_err(|_| foreign())?;
    if envelope.format != FORMAT {
        return Err(foreign());
    }
    if envelope.version != VERSION {
        return Err(TokenFileError::Version { path: path.to_owned(), version: envelope.version });
    }
    let content = match (envelope.plain, envelope.sealed) {
        (Some(plain), None) if key.is_plain() => Zeroizing::new(plain.get().as_bytes().to_vec()),
        (Some(_), None) => return Err(TokenFileError::NotSealed(path.to_owned())),
        (None, Some(_)) if key.is_plain() => return Err(TokenFileError::KeyMissing(path.to_owned())),
        (None, Some(sealed)) => {
            open(&sealed, key).ok_or_else(|| TokenFileError::OtherKey(path.to_owned()))?
        }
        (None, None) | (Some(_), Some(_)) => return Err(foreign()),
    };
    Ok(Some(content))
}

fn open(sealed: &SealedContent, key: &StoreKey) -> Option<Zeroizing<Vec<u8>>> {
    let nonce: [u8; NONCE_BYTES] = STANDARD.decode(&sealed.nonce).ok()?.try_into().ok()?;
    key.open(nonce, &STANDARD.decode(&sealed.text).ok()?, SEALED_HEADER)
}

/// Returns the bytes of a file with this content.
pub(super) fn seal(
    path: &Path,
    key: &StoreKey,
    content: &[u8],
) -> Result<Zeroizing<Vec<u8>>, TokenFileError> {
    let damaged = |error: serde_json::Error| TokenFileError::at(path)(error.into());
    let (plain, sealed) = if key.is_plain() {
        (Some(serde_json::from_slice(content).map_err(damaged)?), None)
    } else {
        let (nonce, text) = key.seal(content, SEALED_HEADER).ok_or(TokenFileError::NoRandomness)?;
        (None, Some(SealedContent { nonce: STANDARD.encode(nonce), text: STANDARD.encode(text) }))
    };
    let envelope = StoreEnvelope { format: FORMAT.to_owned(), version: VERSION, plain, sealed };
    let mut bytes = Zeroizing::new(Vec::with_capacity(content.len() * 2 + 256));
    serde_json::to_writer(&mut *bytes, &envelope).map_err(damaged)?;
    bytes.push(b'\n');
    match bytes.len() > MAX_STORE_BYTES {
        true => Err(TokenFileError::TooLarge(path.to_owned())),
        false => Ok(bytes),
    }
}
