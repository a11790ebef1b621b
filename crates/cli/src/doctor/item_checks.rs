use trunkline_protocol::model::{Prompt, Resource, ResourceTemplate, Tool, ToolAnnotations};
use trunkline_protocol::template::UriTemplate;

use super::finding::{Finding, Findings};
use super::schema_checks::{check_input, check_output};

/// Model APIs refuse names that are longer.
const MAX_MODEL_NAME_LENGTH: usize = 64;

/// The maximum length of a name in the specification.
const MAX_NAME_LENGTH: usize = 128;

/// Some model APIs cut or refuse descriptions that are longer.
const MAX_DESCRIPTION_LENGTH: usize = 1_024;

/// Checks everything that a server offers, and reports problems.
pub(crate) fn check_items(
    tools: &[&Tool],
    prompts: &[&Prompt],
    resources: &[&Resource],
    templates: &[&ResourceTemplate],
) -> Vec<Finding> {
    let mut findings = Findings::default();
    findings.check_distinct("tool", tools.iter().map(|tool| tool.name.as_str()));
    for tool in tools {
        check_tool(tool, &mut findings);
    }
    check_hints(tools, &mut findings);
    findings.check_distinct("prompt", prompts.iter().map(|prompt| prompt.name.as_str()));
    for prompt in prompts {
        check_prompt(prompt, &mut findings);
    }
    findings.check_distinct("resource", resources.iter().map(|resource| resource.uri.as_str()));
    for resource in resources {
        findings.set_subject("resource", &resource.uri);
        check_uri(&resource.uri, &mut findings);
        check_name_and_description(&resource.name, resource.description.as_deref(), &mut findings);
    }
    findings.check_distinct("template", templates.iter().map(|template| template.uri_template.as_str()));
    for template in templates {
        findings.set_subject("template", &template.uri_template);
        if let Err(error) = UriTemplate::parse(&template.uri_template) {
            findings.problem(error.to_string());
        }
        check_name_and_description(&template.name, template.description.as_deref(), &mut findings);
    }
    findings.findings
}

fn check_tool(tool: &Tool, findings: &mut Findings) {
    findings.set_subject("tool", &tool.name);
    let length = tool.name.chars().count();
    if tool.name.is_empty() {
        findings.problem("a tool has no name");
    } else if length > MAX_NAME_LENGTH {
        findings.problem(format!("its name has {length} characters; the protocol allows {MAX_NAME_LENGTH}"));
    } else if length > MAX_MODEL_NAME_LENGTH {
        let most = MAX_MODEL_NAME_LENGTH;
        findings.warning(format!("its name has {length} characters; several models accept at most {most}"));
    }
    let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if let Some(illegal) = tool.name.chars().find(|c| !legal(*c)) {
        findings.problem(format!("its name has {illegal:?}; letters, digits, _, - and . are allowed"));
    } else if tool.name.contains('.') {
        findings.warning("its name has a dot, which several models reject");
    }
    check_name_and_description(&tool.name, tool.description.as_deref(), findings);
    findings.check_hidden("its title", tool.title.as_deref().unwrap_or_default());
    check_input(&tool.input_schema, findings);
    if let Some(schema) = &tool.output_schema {
        check_output(schema, findings);
    }
    if let Some(hints) = &tool.annotations {
        check_annotations(hints, findings);
    }
}

fn check_annotations(hints: &ToolAnnotations, findings: &mut Findings) {
    if hints.read_only == Some(true) && hints.destructive == Some(true) {
        findings.problem("it is both read-only (readOnlyHint) and destructive (destructiveHint)");
    }
    for old in ["readOnly", "destructive", "idempotent", "openWorld"] {
        if hints.rest.get(old).is_some() {
            findings.warning(format!("unknown hint `{old}`; did you mean `{old}Hint`?"));
        }
    }
}

/// Clients treat tools without hints as destructive; reported once for all tools.
fn check_hints(tools: &[&Tool], findings: &mut Findings) {
    let hinted = |tool: &Tool| {
        tool.annotations
            .as_ref()
            .is_some_and(|hints| hints.read_only.is_some() || hints.destructive.is_some())
    };
    let silent = tools.iter().filter(|tool| !hinted(tool)).count();
    if silent > 0 {
        findings.set_subject("tools", "");
        findings
            .note(format!("{silent} of {} have no hints, so clients treat them as destructive", tools.len()));
    }
}

fn check_prompt(prompt: &Prompt, findings: &mut Findings) {
    findings.set_subject("prompt", &prompt.name);
    if prompt.name.is_empty() {
        findings.problem("a prompt has no name");
    }
    check_name_and_description(&prompt.name, prompt.description.as_deref(), findings);
    let names: Vec<_> = prompt.arguments.iter().map(|argument| argument.name.as_str()).collect();
    for (at, name) in names.iter().enumerate() {
        if names.iter().take(at).any(|earlier| earlier == name) {
            findings.problem(format!("argument `{name}` is listed twice"));
        }
    }
}

fn check_uri(uri: &str, findings: &mut Findings) {
    let scheme = uri.split(':').next().filter(|scheme| scheme.len() < uri.len()).unwrap_or_default();
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    if !scheme.starts_with(|c: char| c.is_ascii_alphabetic()) || !scheme.chars().all(plain) {
        findings.problem("its URI has no scheme");
    } else if uri.chars().any(|c| c.is_whitespace() || c.is_control()) {
        findings.problem("its URI has invalid characters");
    }
}

/// Looks at what every part has: a name and a description.
fn check_name_and_description(name: &str, description: Option<&str>, findings: &mut Findings) {
    let description = description.unwrap_or_default();
    if description.trim().is_empty() {
        findings.warning("it has no description");
    } else if description.chars().count() > MAX_DESCRIPTION_LENGTH {
        findings.note(format!("its description is longer than {MAX_DESCRIPTION_LENGTH} characters"));
    }
    findings.check_hidden("its name", name);
    findings.check_hidden("its description", description);
}

#[cfg(test)]
mod tests {
    use trunkline_protocol::RawJson;
    use trunkline_protocol::model::PromptArgument;

    use super::super::finding::Severity;
    use super::*;

    const GOOD: &str = r#"{"type":"object","properties":{"a":{"type":"integer","description":"A number."}}}"#;

    fn tool(name: &str, schema: &str) -> Tool {
        let mut tool = Tool::new(name, RawJson::parse(schema.to_owned()).unwrap());
        tool.description = Some("Does something.".to_owned());
        tool.annotations = Some(ToolAnnotations { read_only: Some(true), ..ToolAnnotations::default() });
        tool
    }

    fn of_tools(tools: &[Tool]) -> String {
        let tools: Vec<_> = tools.iter().collect();
        let found = check_items(&tools, &[], &[], &[]);
        let lines = found.iter().map(|f| format!("{}: {} {}", f.severity.label(), f.subject, f.message));
        lines.collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn correct_tool_has_no_findings() {
        assert_eq!(of_tools(&[tool("add", GOOD)]), "");
    }

    #[test]
    fn tool_checks_report_every_problem() {
        let long = "x".repeat(70);
        let longer = "x".repeat(130);
        for (name, schema, expected) in [
            ("a b", GOOD, "problem: tool `a b` its name has ' '"),
            ("", GOOD, "problem: tool a tool has no name"),
            (&long, GOOD, "its name has 70 characters; several models accept at most 64"),
            (&longer, GOOD, "its name has 130 characters; the protocol allows 128"),
            ("a.b", GOOD, "warning: tool `a.b` its name has a dot"),
            ("é", GOOD, "its name has 'é'"),
            ("f", "{}", "needs \"type\": \"object\""),
            (
                "f",
                r#"{"type":"object","properties":{"a":{"type":"int"}}}"#,
                "inputSchema is not a valid JSON Schema",
            ),
            ("f", r#"{"type":"object","properties":{"a":{"description":"x"}}}"#, "argument `a` has no type"),
            (
                "f",
                r#"{"type":"object","properties":{"a":{"type":"string"}}}"#,
                "note: tool `f` 1 of 1 arguments have no description",
            ),
            ("f", r#"{"type":"object","properties":{"a":{"type":"array"}}}"#, "without an item type"),
            ("f", r#"{"type":"object","required":["z"]}"#, "required argument `z` is not in properties"),
            ("f", r#"{"type":"object","anyOf":[{}]}"#, "anyOf at the top"),
            (
                "f",
                r#"{"type":"object","properties":{"a":{"$ref":"https://example.com/s"}}}"#,
                "refers to https://example.com/s",
            ),
            ("f", r#"{"type":"object","$schema":"https://example.com/d"}"#, "unknown dialect"),
            (
                "f",
                r#"{"type":"object","properties":{"a":{"type":"number","x-mcp-header":"A"}}}"#,
                "modern HTTP clients skip it",
            ),
        ] {
            let found = of_tools(&[tool(name, schema)]);
            assert!(found.contains(expected), "{schema}: no `{expected}` in\n{found}");
        }
        assert!(of_tools(&[tool("add", GOOD), tool("add", GOOD)]).contains("tool `add` is listed 2 times"));
    }

    #[test]
    fn doctor_reports_contradicting_and_missing_hints() {
        let mut both = tool("rm", GOOD);
        both.annotations = Some(ToolAnnotations {
            read_only: Some(true),
            destructive: Some(true),
            ..ToolAnnotations::default()
        });
        assert!(of_tools(&[both]).starts_with("problem: tool `rm` it is both read-only"));
        let mut none = tool("rm", GOOD);
        none.annotations = None;
        assert_eq!(
            of_tools(&[none.clone(), tool("add", GOOD)]),
            "note: tools 1 of 2 have no hints, so clients treat them as destructive"
        );
        none.annotations =
            Some(ToolAnnotations::read(&RawJson::parse(r#"{"readOnly":true}"#).unwrap()).unwrap());
        assert!(of_tools(&[none]).contains("unknown hint `readOnly`; did you mean `readOnlyHint`?"));
    }

    #[test]
    fn invisible_characters_are_a_problem() {
        let mut hidden = tool("f", GOOD);
        hidden.description = Some("Adds.\u{e0041}\u{202e}".to_owned());
        let found = of_tools(&[hidden]);
        assert_eq!(found, "problem: tool `f` its description has 2 invisible characters, which models read");
        let silent = Tool::new("f", RawJson::parse(GOOD).unwrap());
        assert!(of_tools(&[silent]).contains("warning: tool `f` it has no description"));
    }

    #[test]
    fn prompts_resources_and_templates_are_looked_at_too() {
        let mut prompt = Prompt::new("p");
        prompt.arguments = vec![PromptArgument::new("a"), PromptArgument::new("a")];
        let described = |mut resource: Resource| {
            resource.description = Some("x".to_owned());
            resource
        };
        let resources = [
            described(Resource::new("no-scheme", "n")),
            described(Resource::new("demo://a b", "n")),
            described(Resource::new("demo://ok", "n")),
        ];
        let template = ResourceTemplate::new("demo://{open", "n");
        let found = check_items(&[], &[&prompt], &resources.iter().collect::<Vec<_>>(), &[&template]);
        let of = |severity| {
            found.iter().filter(|f| f.severity == severity).map(|f| f.message.as_str()).collect::<Vec<_>>()
        };
        assert_eq!(
            of(Severity::Problem),
            [
                "argument `a` is listed twice",
                "its URI has no scheme",
                "its URI has invalid characters",
                "URI template has a `{` that is never closed",
            ]
        );
        assert_eq!(of(Severity::Warning).len(), 2);
    }
}
