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
        let place = Revision::ALL.iter().position(|known| *known == revision);
        match place.and_then(|place| self.texts.get(place)) {
            Some(text) => text.get_or_init(render).clone(),
            None => render(),
        }
    }
}
