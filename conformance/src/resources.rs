//! Resources: text, bytes, one that is watched, and a family of them.

use serde::Deserialize;
use serde_json::{Value, json};
use trunkline::prelude::*;

use crate::assets::{PIXEL, PNG};

/// The resource that clients subscribe to.
pub(crate) const WATCHED: &str = "test://watched-resource";

pub(crate) fn resources() -> Vec<Resource> {
    vec![
        Resource::new("test://static-text", "static-text")
            .description("A text that never changes.")
            .mime("text/plain")
            .text("This is the content of the static text resource."),
        Resource::new("test://static-binary", "static-binary")
            .description("A picture that never changes.")
            .mime(PNG)
            .blob(PIXEL),
        Resource::new(WATCHED, "watched-resource")
            .description("A text that `test_trigger_resource_update` says has changed.")
            .mime("text/plain")
            .text("This is the content of the watched resource."),
    ]
}

#[derive(Deserialize)]
struct Item {
    id: String,
}

pub(crate) fn template() -> ResourceTemplate {
    ResourceTemplate::new("test://template/{id}/data", "template")
        .description("A record for any id.")
        .mime("application/json")
        .read(async |Item { id }| Json::<Value>(json!({ "id": id, "data": format!("Data for ID: {id}") })))
}
