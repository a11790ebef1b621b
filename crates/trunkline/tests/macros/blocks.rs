use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use serde_json::json;
use trunkline::prelude::*;

use crate::support::{call, only, request};

struct Counter {
    count: AtomicI64,
}

#[parts]
impl Counter {
    fn new() -> Self {
        Self { count: AtomicI64::new(0) }
    }

    /// Adds to the count.
    #[tool(idempotent)]
    async fn add(
        &self,
        /// How much.
        #[default(1)]
        by: i64,
    ) -> i64 {
        self.count.fetch_add(by, Ordering::SeqCst) + by
    }

    #[trunkline::tool]
    async fn double(self: Arc<Self>, context: Context) -> i64 {
        let _ = context;
        self.add(self.get()).await
    }

    #[tool]
    fn largest() -> i64 {
        i64::MAX
    }

    #[cfg(any())]
    #[tool]
    fn absent(&self, missing: NoSuchType) -> i64 {}

    /// Explains the count.
    #[prompt]
    fn explain(&self, to: String) -> String {
        format!("Explain {} to {to}.", self.get())
    }

    #[resource("counter://now")]
    fn now(&self) -> String {
        self.get().to_string()
    }

    #[resource("counter://plus/{number}")]
    fn plus(&self, number: i64) -> String {
        (self.get() + number).to_string()
    }

    fn get(&self) -> i64 {
        self.count.load(Ordering::SeqCst)
    }
}

#[tokio::test]
async fn methods_of_a_block_share_its_value() {
    let server = Server::new("test").with(Counter::new());
    assert_eq!(call(&server, "add", json!({})).await, json!(1));
    assert_eq!(call(&server, "add", json!({ "by": 4 })).await, json!(5));
    assert_eq!(call(&server, "double", json!({})).await, json!(10));
    assert_eq!(call(&server, "largest", json!({})).await, json!(i64::MAX));
    let prompt = json!({ "name": "explain", "arguments": { "to": "Ann" } });
    let explained = request(&server, "prompts/get", prompt).await;
    assert_eq!(explained["messages"][0]["content"]["text"], "Explain 10 to Ann.");
    for (uri, expected) in [("counter://now", "10"), ("counter://plus/7", "17")] {
        let read = request(&server, "resources/read", json!({ "uri": uri })).await;
        assert_eq!(read["contents"][0]["text"], expected);
    }
    let listed = request(&server, "tools/list", json!({})).await;
    let names: Vec<_> = listed["tools"].as_array().unwrap().iter().map(|tool| &tool["name"]).collect();
    assert_eq!(names, ["add", "double", "largest"]);
    assert_eq!(listed["tools"][0]["annotations"], json!({ "idempotentHint": true }));
    let by = json!({ "type": "integer", "description": "How much.", "default": 1 });
    assert_eq!(listed["tools"][0]["inputSchema"]["properties"]["by"], by);
}

#[tokio::test]
async fn program_can_keep_the_value_and_call_its_methods() {
    let counter = Arc::new(Counter::new());
    let server = Server::new("test").with(counter.clone());
    assert_eq!(counter.add(3).await, 3);
    assert_eq!(call(&server, "add", json!({ "by": 4 })).await, json!(7));
    assert_eq!(counter.get(), 7);
}

struct Shown<T>(T);

#[parts]
impl<T> Shown<T>
where
    T: Display + Send + Sync + 'static,
{
    #[tool]
    fn show(&self) -> String {
        self.0.to_string()
    }
}

#[tokio::test]
async fn type_of_a_block_may_be_generic() {
    let server = Server::new("test").with(Shown(7));
    assert_eq!(call(&server, "show", json!({})).await, json!("7"));
    assert_eq!(only(&server, "tools/list", "tools").await["name"], "show");
}
