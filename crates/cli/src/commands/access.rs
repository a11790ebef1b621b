//! `trunkline access`: which access rule decides, without asking a hub or a server.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Args, Subcommand, ValueEnum, ValueHint};
use serde_json::{Map, Value, json};
use trunkline_config::{AccessAction, ConfigFile, ConfigVariables, ServerConfig};
use trunkline_hub::{AccessDecision, AccessItem, AccessRules, AccessStep, ItemKind};
use trunkline_protocol::RawJson;
use trunkline_server::session::Principal;
use trunkline_server::{AccessGrant, CallerIdentity};

use super::serve::{OWN_SERVER_NAME, name_template};
use crate::config_failure::config_failure;
use crate::connect::print_stdout;
use crate::exit::{CliFailure, ExitReason};
use crate::render::one_line;
use crate::terminal::escape_line;

/// Explain the access rules of a config file
#[derive(Debug, Args)]
pub(crate) struct AccessArgs {
    #[command(subcommand)]
    command: AccessCommand,
}

#[derive(Debug, Subcommand)]
enum AccessCommand {
    Check(CheckArgs),
}

/// Show whether a caller may use an item, and which rule decides
#[derive(Debug, Args)]
#[command(after_help = "\
The exit code is 0 if it is allowed, and 1 if it is denied or needs a scope.\n\
Servers are not asked: say with --read-only how the tool is annotated.\n\n\
Examples:\n  \
trunkline access check ann crm__get_user\n  \
trunkline access check ann get_user --server crm --scope crm:read\n  \
trunkline access check anonymous notes://1 --kind resource --server notes")]
struct CheckArgs {
    /// Principal, as in the audit log; `anonymous` and `process` are the
    /// callers without a token
    #[arg(verbatim_doc_comment)]
    principal: String,
    /// Tool as the hub names it, or with --server as its server does;
    /// with --kind a prompt or the URI of a resource
    #[arg(verbatim_doc_comment, value_name = "TOOL")]
    item: String,
    /// Server that has the item
    #[arg(long, value_name = "NAME")]
    server: Option<String>,
    /// What the item is
    #[arg(long, value_enum, default_value_t = CheckedKind::Tool)]
    kind: CheckedKind,
    /// The server annotates the tool as read-only
    #[arg(long)]
    read_only: bool,
    /// Issuer of the token
    #[arg(long, value_name = "URL")]
    issuer: Option<String>,
    /// Scope of the token; repeatable
    #[arg(long, value_name = "SCOPE")]
    scope: Vec<String>,
    /// Claim of the token; repeat a name for a list
    #[arg(long, value_name = "NAME=VALUE", value_parser = parse_claim)]
    claim: Vec<(String, Value)>,
    /// OAuth client that the token was issued to
    #[arg(long, value_name = "ID")]
    client: Option<String>,
    /// Config file [default: the one in this folder]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    config: Option<PathBuf>,
    /// Print JSON on one line
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum CheckedKind {
    Tool,
    Prompt,
    Resource,
}

/// Runs a command about access rules.
///
/// # Errors
/// The file cannot be used, or access is denied.
pub(crate) fn run(args: &AccessArgs) -> Result<(), CliFailure> {
    let AccessCommand::Check(args) = &args.command;
    check(args).map_err(|failure| failure.with_json(args.json))
}

/// Parses a value as JSON; anything else, and `null`, is a string.
fn parse_claim(text: &str) -> Result<(String, Value), String> {
    let (name, value) = text.split_once('=').ok_or("must be NAME=VALUE")?;
    let decoded: Option<Value> = serde_json::from_str(value).ok();
    let decoded = decoded.filter(|value| !value.is_null());
    Ok((name.to_owned(), decoded.unwrap_or_else(|| Value::from(value))))
}

fn check(args: &CheckArgs) -> Result<(), CliFailure> {
    let file = open(args.config.as_deref())?;
    let rules = file.access_rules().map_err(|problem| config_failure(&[problem]))?;
    let rules = AccessRules::new(rules);
    let (server, name) = args.find_item(&file)?;
    let (principal, grant) = args.caller();
    let caller = CallerIdentity::new(&principal, grant.as_ref());
    let item = AccessItem::new(&server, args.kind.into(), &name).read_only(args.read_only);
    let (decision, steps) = rules.explain(caller, item);
    let text = match args.json {
        true => format!("{}\n", one_line(&RawJson::from(&as_json(item, &decision, &steps)))),
        false => as_text(&decision, &steps),
    };
    print_stdout(&text)?;
    if decision.is_allowed() {
        return Ok(());
    }
    let kind = args.kind.as_str();
    let what = format!("`{}` may not use the {kind} `{name}` of `{server}`: {decision}", args.principal);
    Err(CliFailure::new(ExitReason::Failed, escape_line(&what)))
}

fn open(path: Option<&Path>) -> Result<ConfigFile, CliFailure> {
    let variables = ConfigVariables::from_environment();
    let found = match path {
        Some(path) => ConfigFile::open(path, variables).map(Some),
        None => ConfigFile::find(".", variables),
    };
    found.map_err(|error| config_failure(error.problems()))?.ok_or_else(|| {
        CliFailure::configuration("there is no config file in this folder")
            .hint("name one with `--config FILE`")
    })
}

impl CheckArgs {
    /// Returns the server that has the item, and the item's name there.
    fn find_item(&self, file: &ConfigFile) -> Result<(String, String), CliFailure> {
        if let Some(server) = &self.server {
            return Ok((server.clone(), self.item.clone()));
        }
        let (servers, _) = file.valid_and_invalid_servers();
        if self.kind == CheckedKind::Resource {
            return match servers.as_slice() {
                [only] => Ok((only.name.to_string(), self.item.clone())),
                _ => Err(CliFailure::new(ExitReason::Usage, "any server may have a resource")
                    .hint("name the server with `--server NAME`")),
            };
        }
        let template = name_template(file)?;
        let found = servers.iter().find_map(|server| {
            let item = template.item_name(server.name.as_str(), &self.item)?;
            Some((server.name.to_string(), original_name(server, item)))
        });
        if let Some(found) = found {
            return Ok(found);
        }
        let commands = file.section("commands").map(|section| section.tables()).and_then(Result::ok);
        if commands.is_some_and(|commands| commands.iter().any(|command| command.name() == self.item)) {
            return Ok((OWN_SERVER_NAME.to_owned(), self.item.clone()));
        }
        let what = format!("no configured server has a name with which `{}` begins", self.item);
        Err(CliFailure::new(ExitReason::Usage, what)
            .hint("name the server with `--server NAME`, and the item as the server does"))
    }

    /// Returns the caller that the options describe.
    fn caller(&self) -> (Principal, Option<Arc<AccessGrant>>) {
        let principal = match &*self.principal {
            "anonymous" => return (Principal::Anonymous, None),
            "process" => return (Principal::Process, None),
            name => Principal::Named(name.into()),
        };
        let mut grant = AccessGrant::new().with_scopes(self.scope.iter().map(String::as_str));
        grant.issuer = self.issuer.as_deref().map(Into::into);
        grant.client_id = self.client.as_deref().map(Into::into);
        let mut claims = Map::new();
        for (name, value) in &self.claim {
            match claims.get_mut(name) {
                Some(Value::Array(values)) => values.push(value.clone()),
                Some(first) => *first = json!([first, value]),
                None => drop(claims.insert(name.clone(), value.clone())),
            }
        }
        let grant = grant.with_claims(RawJson::from(&Value::Object(claims)));
        (principal, Some(Arc::new(grant)))
    }
}

/// Returns the name that a server gives a tool which is exposed under another one.
fn original_name(server: &ServerConfig, item: &str) -> String {
    let renamed = server.tools.rename.iter().find(|(_, new)| *new == item);
    renamed.map_or_else(|| item.to_owned(), |(old, _)| old.clone())
}

impl CheckedKind {
    fn as_str(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Prompt => "prompt",
            Self::Resource => "resource",
        }
    }
}

impl From<CheckedKind> for ItemKind {
    fn from(kind: CheckedKind) -> Self {
        match kind {
            CheckedKind::Tool => Self::Tool,
            CheckedKind::Prompt => Self::Prompt,
            CheckedKind::Resource => Self::Resource,
        }
    }
}

fn as_json(item: AccessItem<'_>, decision: &AccessDecision, steps: &[AccessStep]) -> Value {
    let scopes = match decision {
        AccessDecision::NeedsScope { scopes, .. } => Some(scopes.to_vec()),
        _ => None,
    };
    let steps = steps.iter().map(|step| {
        let reason = step.mismatch.as_ref().map(ToString::to_string);
        json!({ "rule": &*step.rule, "action": action(step.action), "matches": reason.is_none(), "reason": reason })
    });
    json!({
        "server": item.server,
        "item": item.name,
        "allowed": decision.is_allowed(),
        "listed": decision.is_listed(),
        "rule": decision.rule(),
        "scopes": scopes,
        "decision": decision.to_string(),
        "rules": steps.collect::<Vec<_>>(),
    })
}

fn as_text(decision: &AccessDecision, steps: &[AccessStep]) -> String {
    let mut text = format!("{}\n", escape_line(&decision.to_string()));
    for step in steps {
        let outcome = match &step.mismatch {
            Some(mismatch) => mismatch.to_string(),
            None => "matches".to_owned(),
        };
        let line = format!("  {} `{}` {outcome}", action(step.action), step.rule);
        text.push_str(&escape_line(&line));
        text.push('\n');
    }
    text
}

fn action(action: AccessAction) -> &'static str {
    match action {
        AccessAction::Allow => "allow",
        AccessAction::Deny => "deny",
    }
}
