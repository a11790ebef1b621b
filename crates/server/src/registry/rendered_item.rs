use std::sync::OnceLock;

use trunkline_protocol::codec::Dialect;
use trunkline_protocol::{JsonWriter, RawJson, Revision};

/// The item of a list, rendered once for each requested revision.
#[derive(Debug, Default)]
pub struct RenderedItem {
    texts: [OnceLock<RawJson>; Revision::ALL.len()],
}

impl RenderedItem {
    /// Returns the item in a revision.
    pub fn get(&self, revision: Revision, write: impl FnOnce(&Dialect, &mut JsonWriter)) -> RawJson {
        let render = || {
            let mut writer = JsonWriter::with_capacity(256);
            write(Dialect::of(revision), &mut writer);
            writer.into_raw()
        };
        let index = Revision::ALL.iter().position(|known| *known == revision);
        match index.and_then(|index| self.texts.get(index)) {
            Some(text) => text.get_or_init(render).clone(),
            None => render(),
        }
    }
}
