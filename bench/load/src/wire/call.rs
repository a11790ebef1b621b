//! A `tools/call` that is built once and sent many times.

use anyhow::{Context as _, Result};

use super::http::{PROOF_HEADER, Target, post};
use super::message::{self, Era, FIRST_ID};
use super::proof::ProofKey;

/// The bytes of one call; only the id changes between uses.
#[derive(Clone)]
pub(crate) struct Call {
    bytes: Vec<u8>,
    id_at: usize,
    /// The key that signs the proof of the request, and where that is.
    proof: Option<(&'static ProofKey, usize)>,
}

impl Call {
    /// Builds the call as one line, for stdio.
    pub(crate) fn line(era: Era, text: &str) -> Result<Self> {
        let mut line = message::call(era, FIRST_ID, "echo", text);
        line.push('\n');
        Self::from_bytes(line.into_bytes())
    }

    /// Builds the call as an HTTP request.
    pub(crate) fn http(target: &Target<'_>, text: &str) -> Result<Self> {
        let tool = target.place.tool;
        let body = message::call(target.era, FIRST_ID, tool, text);
        let call = Self::from_bytes(post(target, "tools/call", Some(tool), &body)?)?;
        let Some(key) = target.place.proof_key else { return Ok(call) };
        let name =
            memchr::memmem::find(&call.bytes, PROOF_HEADER.as_bytes()).context("a call has no proof")?;
        Ok(Self { proof: Some((key, name + PROOF_HEADER.len())), ..call })
    }

    /// Writes `id` over the last one and gives the bytes to send.
    pub(crate) fn with_id(&mut self, id: u32) -> &[u8] {
        let mut rest = id;
        for digit in self.bytes.iter_mut().skip(self.id_at).take(ID_DIGITS).rev() {
            *digit = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        &self.bytes
    }

    /// Writes a new proof over the last one, if the call has any.
    ///
    /// # Errors
    /// It cannot be signed.
    pub(crate) fn renew_proof(&mut self) -> Result<()> {
        let Some((key, at)) = self.proof else { return Ok(()) };
        let proof = key.proof()?;
        for (byte, new) in self.bytes.iter_mut().skip(at).zip(proof.bytes()) {
            *byte = new;
        }
        Ok(())
    }

    /// Gives the bytes as they were last sent.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn from_bytes(bytes: Vec<u8>) -> Result<Self> {
        let id = FIRST_ID.to_string();
        let id_at = memchr::memmem::find(&bytes, id.as_bytes()).context("a call has no id")?;
        Ok(Self { bytes, id_at, proof: None })
    }
}

const ID_DIGITS: usize = 9;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_id_replaces_only_the_previous_id() {
        let mut call = Call::line(Era::Legacy, "text").unwrap();
        let first = String::from_utf8(call.with_id(102_400_000).to_vec()).unwrap();
        let second = String::from_utf8(call.with_id(987_654_321).to_vec()).unwrap();
        assert!(first.contains(r#""id":102400000,"#));
        assert_eq!(second, first.replace("102400000", "987654321"));
    }
}
