//! The sealed values of states, each bound to its principal and version.

use trunkline_protocol::RawJson;
use trunkline_session::{Principal, RowKind, StateHandle, StoreError, StoredState};

use crate::store::RedisCore;

/// The newest version of the content that this build reads, and the one that it writes.
const VERSION: u8 = 1;

/// Seals a value; it opens only as this version of this state, and only for its principal.
pub(crate) fn seal_value(
    core: &RedisCore,
    handle: StateHandle,
    principal: &Principal,
    version: u64,
    value: &RawJson,
) -> Result<Vec<u8>, StoreError> {
    let plain = [&[VERSION], value.as_str().as_bytes()].concat();
    core.seal(RowKind::State, &binding(core, handle, principal, version), &plain)
}

/// Opens a value; `None` if it is sealed with a key that this process does not have, is damaged, or was moved here from another
/// state.
pub(crate) fn open_value(
    core: &RedisCore,
    handle: StateHandle,
    principal: &Principal,
    version: u64,
    sealed: &[u8],
) -> Result<Option<StoredState>, StoreError> {
    let Some(opened) = RowKind::State.open(&core.sealer, &binding(core, handle, principal, version), sealed)
    else {
        tracing::warn!("a state is sealed with another state key");
        return Ok(None);
    };
    match opened.plain.split_first() {
        Some((&VERSION, text)) => {
            let text = String::from_utf8(text.to_vec()).ok();
            let value = text.and_then(|text| RawJson::parse(text).ok());
            Ok(value.map(|value| StoredState { value, version }))
        }
        Some((newer, _)) if *newer > VERSION => {
            let cause = format!("a state has version {newer}, and this build reads up to {VERSION}");
            Err(StoreError::Unavailable(cause))
        }
        _ => Ok(None),
    }
}

fn binding(core: &RedisCore, handle: StateHandle, principal: &Principal, version: u64) -> Vec<u8> {
    [&handle.row_key()[..], &core.principal(principal), &version.to_le_bytes()].concat()
}
