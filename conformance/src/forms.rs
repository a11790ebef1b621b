//! Tools that ask the user to fill in a form: the type of the answer makes the form.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use trunkline::prelude::*;

pub(crate) fn tools() -> Vec<Tool> {
    vec![
        Tool::new("test_elicitation")
            .description("Asks the user for a name and an address.")
            .run(ask_contact),
        Tool::new("test_elicitation_sep1034_defaults")
            .description("Asks the user for one of each kind of field, all filled in already.")
            .run(ask_profile),
        Tool::new("test_elicitation_sep1330_enums")
            .description("Asks the user to choose, in every way in which a form can.")
            .run(ask_choices),
    ]
}

#[derive(Deserialize, JsonSchema)]
struct Message {
    /// What the user reads above the form.
    message: String,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Contact {
    /// What the user is called.
    username: String,
    /// Where the user gets mail.
    #[schemars(email)]
    email: String,
}

async fn ask_contact(cx: Context, Message { message }: Message) -> Result<String, ToolError> {
    let SchemaForm(contact) = cx.ask(ask::<SchemaForm<Contact>>(message)).await?;
    said(&contact)
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(default)]
struct Profile {
    name: String,
    age: i64,
    score: f64,
    status: Status,
    verified: bool,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Status {
    Active,
    Inactive,
    Pending,
}

impl Default for Profile {
    fn default() -> Self {
        Self { name: "John Doe".to_owned(), age: 30, score: 95.5, status: Status::Active, verified: true }
    }
}

async fn ask_profile(cx: Context) -> Result<String, ToolError> {
    let SchemaForm(profile) = cx.ask(ask::<SchemaForm<Profile>>("Is this you?")).await?;
    said(&profile)
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Choices {
    untitled_single: Untitled,
    titled_single: Titled,
    /// The titles of choices were once a list beside that of the values.
    #[schemars(extend("enumNames" = ["Option One", "Option Two", "Option Three"]))]
    legacy_enum: Legacy,
    untitled_multi: Vec<Untitled>,
    titled_multi: Vec<Titled>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Untitled {
    Option1,
    Option2,
    Option3,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Titled {
    /// First option
    Value1,
    /// Second option
    Value2,
    /// Third option
    Value3,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Legacy {
    Opt1,
    Opt2,
    Opt3,
}

async fn ask_choices(cx: Context) -> Result<String, ToolError> {
    let SchemaForm(choices) = cx.ask(ask::<SchemaForm<Choices>>("Which of these?")).await?;
    said(&choices)
}

fn said(answer: &impl Serialize) -> Result<String, ToolError> {
    Ok(format!("the user said {}", serde_json::to_string(answer)?))
}
