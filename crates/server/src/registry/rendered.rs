use std::sync::OnceLock;

use trunkline_protocol::codec::Dialect;
use trunkline_protocol::{Raw, Revision, Writer};

/// The item of a list, written once in each revision that somebody asks for.
#[derive(Debug, Default)]
pub struct Rendered {
    texts: [OnceLock<Raw>; Revision::ALL.len()],
}

impl Rendered {
    /// Returns the item in a revision.
    pub fn get(&self, revision: Revision, write: impl FnOnce(&Dialect, &mut Writer)) -> Raw {
        let render = || {
            let mut writer = Writer::with_capacity(256);
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
