//! The server of `docs/command-line.md`, to follow its transcripts: a small shop.
//!
//! `cargo build -p trunkline-cli --example shop`, and then `trunkline add shop target/debug/examples/shop`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use trunkline_protocol::model::Content;
use trunkline_protocol::{LoggingLevel, RawJson};
use trunkline_server::{
    Context, Json, Prompt, Resource, ResourceTemplate, Server, Tool, ToolError, elicit, open_url, stdio,
};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    Ok(runtime.block_on(shop().serve(stdio()))?)
}

/// Makes the shop.
pub(crate) fn shop() -> Server {
    let tools = vec![
        Tool::new("search").description("Finds cakes.").read_only().run(search),
        Tool::new("order").description("Orders a cake; asks for the details first.").destructive().run(order),
        Tool::new("pay").description("Asks for payment on a web page.").additive().run(pay),
        Tool::new("bake").description("Bakes a cake, with progress.").additive().run(bake),
        Tool::new("photo").description("Returns a picture.").read_only().run(photo),
        Tool::new("restock").description("Adds a tool and updates the menu.").additive().run(restock),
    ];
    let toast = Prompt::new("toast").description("A toast to a guest.").complete("name", names).get(toast);
    let menu = Resource::new("menu://today", "menu").description("The cakes of the day.").mime("text/plain");
    let recipe = ResourceTemplate::new("recipe://{cake}", "recipe").description("How to bake a cake.");
    Server::new("shop")
        .title("Shop")
        .version("1.0.0")
        .with(tools)
        .with(toast)
        .with(menu.read(async || "Apple cake, carrot cake."))
        .with(recipe.read(recipe_of))
}

#[derive(Deserialize, JsonSchema)]
struct Search {
    /// A word of its name.
    word: String,
    /// The price that a cake has to be below.
    #[serde(default = "ten")]
    below: u32,
    /// Only cakes with all of these.
    #[serde(default)]
    with: Vec<String>,
}

fn ten() -> u32 {
    10
}

#[derive(Serialize, JsonSchema)]
struct Found {
    cakes: Vec<Cake>,
}

#[derive(Serialize, JsonSchema)]
struct Cake {
    name: &'static str,
    price: u32,
    with: &'static str,
}

async fn search(Search { word, below, with }: Search) -> Json<Found> {
    let cakes = [("Apple cake", 4, "apples"), ("Carrot cake", 5, "nuts"), ("Wedding cake", 90, "roses")];
    let fits = |(name, price, inside): &(&str, u32, &str)| {
        name.to_lowercase().contains(&word) && *price < below && with.iter().all(|wanted| inside == wanted)
    };
    let cakes = cakes.into_iter().filter(fits).map(|(name, price, with)| Cake { name, price, with });
    Json(Found { cakes: cakes.collect() })
}

#[derive(Deserialize, JsonSchema)]
struct Order {
    /// The cake to order.
    cake: String,
}

async fn order(cx: Context, Order { cake }: Order) -> Result<String, ToolError> {
    let schema = r#"{"type":"object","properties":{
        "name":{"type":"string","title":"Your name"},
        "pieces":{"type":"integer","minimum":1,"maximum":12,"default":2},
        "how":{"type":"string","oneOf":[{"const":"here","title":"Eat here"},{"const":"away","title":"Take away"}]}
    },"required":["name","how"]}"#;
    let reply =
        cx.ask(elicit(format!("One {cake}?"), RawJson::parse(schema).map_err(ToolError::from)?)).await?;
    Ok(reply.content.map_or_else(|| "Nothing then.".to_owned(), |content| format!("Ordered: {content}")))
}

async fn pay(cx: Context) -> Result<&'static str, ToolError> {
    let reply = cx.ask(open_url("Please pay.", "https://pay.example.com/17")).await?;
    Ok(if reply.action == trunkline_protocol::model::ElicitAction::Accept {
        "Thank you."
    } else {
        "Later then."
    })
}

async fn bake(cx: Context) -> &'static str {
    cx.log(LoggingLevel::Info, "the oven is warm");
    for step in 1..=3 {
        cx.progress_with(step, Some(3.0), "baking");
        tokio::task::yield_now().await;
    }
    "A cake."
}

async fn photo() -> Content {
    Content::image(b"\x89PNG\r\n\x1a\n", "image/png")
}

async fn restock(cx: Context) -> Result<&'static str, ToolError> {
    let server = cx.server().ok_or_else(|| ToolError::new("there is no shop"))?;
    server.add(Tool::new("taste").description("Tastes a cake.").run(async || "Good."))?;
    server.notify_updated("menu://today");
    Ok("There is more.")
}

#[derive(Deserialize, JsonSchema)]
struct Toast {
    /// The name of the guest.
    name: String,
}

async fn names(start: String, _: BTreeMap<String, String>) -> Vec<String> {
    ["Ann", "Anton", "Berta"]
        .into_iter()
        .filter(|name| name.starts_with(&*start))
        .map(str::to_owned)
        .collect()
}

async fn toast(Toast { name }: Toast) -> String {
    format!("Write a short toast to {name}.")
}

#[derive(Deserialize, JsonSchema)]
struct Recipe {
    cake: String,
}

async fn recipe_of(Recipe { cake }: Recipe) -> String {
    format!("Bake the {cake} for an hour.")
}
