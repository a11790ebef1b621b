//! Loop detection: the hubs that a request or an item passed through, so that no hub is its own upstream.
//!
//! A hub sends its id with each list request to an upstream. An upstream that is a hub too adds its own id to each
//! item, after the ids of the hubs that the item passed through before; a hub that finds its own id on an item leaves
//! the item out. A list request that reaches the hub that sent it is refused.

use std::sync::Arc;

use trunkline_protocol::{JsonObject, JsonWriter, RawJson, Refusal};

/// The `_meta` member with the hub ids, of requests and of list items.
pub(crate) const VIA_KEY: &str = "trunkline/via";

/// The most hubs that a request may pass through.
const MAX_HOPS: usize = 8;

/// The length of a hub id in characters.
const ID_LENGTH: usize = 16;

/// The `reason` of a refusal because of a loop.
const LOOP_REASON: &str = "circle";

/// The random, unique id of one hub, which reveals nothing about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HubId(Arc<str>);

impl HubId {
    pub(crate) fn random() -> Self {
        let mut bytes = [0; ID_LENGTH / 2];
        // Without randomness all hubs have one id, and chained hubs detect a loop where there is none.
        let _ = getrandom::fill(&mut bytes);
        Self(bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>().into())
    }
}

/// The hubs that a request or an item passed through, the nearest last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ViaPath(Vec<String>);

impl ViaPath {
    /// Reads the path from `_meta`; ids that are not well-formed are ignored.
    pub(crate) fn from_meta(meta: Option<&JsonObject>) -> Self {
        let Some(text) = meta.and_then(|meta| meta.text(VIA_KEY)) else { return Self::default() };
        let is_name =
            |name: &&str| name.len() == ID_LENGTH && name.bytes().all(|byte| byte.is_ascii_hexdigit());
        Self(text.split(' ').filter(is_name).take(MAX_HOPS).map(str::to_owned).collect())
    }

    /// Reports whether a hub is on the path.
    pub(crate) fn contains(&self, hub: &HubId) -> bool {
        self.0.iter().any(|name| **name == *hub.0)
    }

    /// Reports whether there is no hub on the path.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Refuses a request that has passed through this hub already, or through too many hubs.
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

    /// Renders the path with a further hub at its end.
    pub(crate) fn to_raw_with(&self, hub: &HubId) -> RawJson {
        let names: Vec<&str> = self.0.iter().map(String::as_str).chain([&*hub.0]).collect();
        RawJson::from_text(&names.join(" "))
    }

    /// Appends a hub to the path of a list item; the other members of its `_meta` stay.
    pub(crate) fn mark_item(&self, item: RawJson, hub: &HubId) -> RawJson {
        let Ok(mut members) = item.members() else { return item };
        let mut meta = members.get("_meta").and_then(|meta| meta.members().ok()).unwrap_or_default();
        meta.set(VIA_KEY, self.to_raw_with(hub));
        members.set("_meta", meta.to_raw());
        members.to_raw()
    }
}

/// Returns the message of a refusal because of a loop; `None` for other refusals.
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
    fn via_path_is_read_back_and_extended_by_each_hub() {
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
        let via = ViaPath::from_meta(Some(&kept));
        assert_eq!(via.0, [&*one.0, &*two.0]);
        assert!(via.contains(&one) && via.contains(&two) && !via.contains(&HubId::random()));
        assert!(via.check_loop(&one).is_err() && via.check_loop(&HubId::random()).is_ok());
    }

    #[test]
    fn malformed_via_path_is_ignored_and_a_long_one_refused() {
        for nonsense in ["", "x", " ", "g123456789abcdef", "0123456789abcdef0"] {
            assert!(ViaPath::from_meta(Some(&meta(nonsense))).is_empty(), "{nonsense}");
        }
        assert!(ViaPath::from_meta(None).is_empty());
        let long = vec!["0123456789abcdef"; 10_000].join(" ");
        let via = ViaPath::from_meta(Some(&meta(&long)));
        assert_eq!(via.0.len(), MAX_HOPS);
        assert!(via.check_loop(&HubId::random()).unwrap_err().message().contains("circle"));
    }
}
