//! Which hubs something came through, so that none is behind itself.
//!
//! A hub that asks another server for a list says who it is. If that server is a hub too, it names itself on each item
//! beside those that the item came through before; and whoever finds its own name there leaves the item out. A list that
//! is asked for by the one who has it is refused.

use std::sync::Arc;

use trunkline_protocol::{JsonObject, JsonWriter, RawJson, Refusal};

/// The member of `_meta` that names hubs, of requests and of items of lists.
pub(crate) const VIA_KEY: &str = "trunkline/via";

/// The hubs that something may come through.
const MAX_HOPS: usize = 8;

/// The characters of a hub's name.
const ID_LENGTH: usize = 16;

/// The word by which a refusal says that there is a circle.
const LOOP_REASON: &str = "circle";

/// The name of one hub, which no other has and which says nothing about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HubId(Arc<str>);

impl HubId {
    pub(crate) fn random() -> Self {
        let mut bytes = [0; ID_LENGTH / 2];
        // Without randomness hubs have one name, and those that are behind each other find a circle where there is none.
        let _ = getrandom::fill(&mut bytes);
        Self(bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>().into())
    }
}

/// The hubs that something came through, the nearest last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ViaPath(Vec<String>);

impl ViaPath {
    /// Reads what is said in `_meta`; nonsense is nobody's name.
    pub(crate) fn from_meta(meta: Option<&JsonObject>) -> Self {
        let Some(text) = meta.and_then(|meta| meta.text(VIA_KEY)) else { return Self::default() };
        let is_name =
            |name: &&str| name.len() == ID_LENGTH && name.bytes().all(|byte| byte.is_ascii_hexdigit());
        Self(text.split(' ').filter(is_name).take(MAX_HOPS).map(str::to_owned).collect())
    }

    /// Reports whether a hub is on it.
    pub(crate) fn contains(&self, hub: &HubId) -> bool {
        self.0.iter().any(|name| **name == *hub.0)
    }

    /// Reports whether no hub has anything to do with it.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Refuses what came through a hub that it is with now, or through more of them than anybody has behind each other.
    ///
    /// # Errors
    /// [`Refusal::INTERNAL`] with the reason.
    pub(crate) fn check_loop(&self, hub: &HubId) -> Result<(), Refusal> {
        let problem = match self.contains(hub) {
            true => {
                "this hub is reached through itself: it is among its own servers, directly or through another hub or proxy; \
                 take it out there"
            }
            false if self.0.len() >= MAX_HOPS => {
                "too many hubs are behind each other; there may be a circle of them"
            }
            false => return Ok(()),
        };
        let mut data = JsonWriter::with_capacity(24);
        data.open_object();
        data.plain_key("reason");
        data.string(LOOP_REASON);
        data.close_object();
        Err(Refusal::INTERNAL.with_message(problem).with_data(data.into_raw()))
    }

    /// Says it with a further hub at its end.
    pub(crate) fn to_raw_with(&self, hub: &HubId) -> RawJson {
        let names: Vec<&str> = self.0.iter().map(String::as_str).chain([&*hub.0]).collect();
        RawJson::from_text(&names.join(" "))
    }

    /// Names a hub on an item of a list that came this way, whatever of its `_meta` is shown otherwise.
    pub(crate) fn mark_item(&self, item: RawJson, hub: &HubId) -> RawJson {
        let Ok(mut members) = item.members() else { return item };
        let mut meta = members.get("_meta").and_then(|meta| meta.members().ok()).unwrap_or_default();
        meta.set(VIA_KEY, self.to_raw_with(hub));
        members.set("_meta", meta.to_raw());
        members.to_raw()
    }
}

/// Returns what a refusal says about a circle, if that is what it is about.
pub(crate) fn loop_message(refused: &trunkline_client::ErrorResponse) -> Option<&str> {
    let reason = refused.data.as_ref()?.members().ok()?.text("reason")?;
    (reason == LOOP_REASON).then_some(&*refused.message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meta(text: &str) -> JsonObject {
        let mut meta = JsonObject::new();
        meta.set(VIA_KEY, RawJson::from_text(text));
        meta
    }

    #[test]
    fn a_trail_is_read_back_and_grows_by_whoever_marks_it() {
        let (one, two) = (HubId::random(), HubId::random());
        assert_ne!(one, two);
        let item = RawJson::parse(r#"{"name":"t","_meta":{"x":1}}"#).unwrap();
        let first = ViaPath(vec![one.0.to_string()]);
        let item = first.mark_item(item, &two);
        let members = item.members().unwrap();
        let kept = members.get("_meta").unwrap().members().unwrap();
        assert_eq!(
            (members.text("name").as_deref(), kept.get("x").map(RawJson::as_str)),
            (Some("t"), Some("1"))
        );
        let trail = ViaPath::from_meta(Some(&kept));
        assert_eq!(trail.0, [&*one.0, &*two.0]);
        assert!(trail.contains(&one) && trail.contains(&two) && !trail.contains(&HubId::random()));
        assert!(trail.check_loop(&one).is_err() && trail.check_loop(&HubId::random()).is_ok());
    }

    #[test]
    fn nonsense_is_no_trail_and_a_long_one_is_refused() {
        for nonsense in ["", "x", " ", "g123456789abcdef", "0123456789abcdef0"] {
            assert!(ViaPath::from_meta(Some(&meta(nonsense))).is_empty(), "{nonsense}");
        }
        assert!(ViaPath::from_meta(None).is_empty());
        let long = vec!["0123456789abcdef"; 10_000].join(" ");
        let trail = ViaPath::from_meta(Some(&meta(&long)));
        assert_eq!(trail.0.len(), MAX_HOPS);
        assert!(trail.check_loop(&HubId::random()).unwrap_err().message().contains("circle"));
    }
}
