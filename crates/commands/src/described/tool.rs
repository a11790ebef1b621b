use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value, json};
use trunkline_server::protocol::RawJson;
use trunkline_server::protocol::model::{CallToolResult, ToolAnnotations};
use trunkline_server::{Confirm, Context, Tool, ToolError, ask};
use trunkline_transport::process::{Command, RunLimits};

use super::argument::DescribedArgument;
use super::arguments_file::ArgumentsFile;
use super::command_template::{CommandTemplate, variable_name};
use super::config::{ArgumentPassing, ArgvItem, CommandConfig, CommandFault, Confirmation, OutputFormat};
use super::question_text;
use super::template::{DescribedError, TemplateWord, argument_texts};
use crate::run::{CommandProcess, OutputStore, ResultFormat};
use crate::tree::sanitize;

/// A validated described command.
#[derive(Clone, Debug)]
pub struct DescribedCommand {
    name: String,
    config: CommandConfig,
    arguments: Vec<DescribedArgument>,
    template: CommandTemplate,
    confirm: Option<TemplateWord>,
    folder: PathBuf,
}

/// A command line that is ready to run, with its environment variables.
#[derive(Debug)]
pub struct PreparedCommand {
    words: Vec<String>,
    variables: Vec<(String, String)>,
    values: Vec<Option<Vec<String>>>,
    /// Deleted after the run.
    file: Option<ArgumentsFile>,
}

impl PreparedCommand {
    /// Returns the program and its arguments.
    pub fn words(&self) -> &[String] {
        &self.words
    }

    /// Returns the environment variables with the arguments of a script.
    pub fn variables(&self) -> &[(String, String)] {
        &self.variables
    }
}

/// The environment variable with the path of the arguments file.
const ARGUMENTS_FILE: &str = "ARGUMENTS_FILE";

impl DescribedCommand {
    /// Validates a command; relative paths are resolved from the folder.
    ///
    /// # Errors
    /// All faults of the command.
    pub fn new(name: &str, config: CommandConfig, folder: &Path) -> Result<Self, Vec<CommandFault>> {
        let mut faults = Vec::new();
        if sanitize(name) != name || name.len() > 64 {
            faults.push(CommandFault::new(&[], "its name must be up to 64 letters, digits, `_` and `-`"));
        }
        let arguments = config.arguments.clone().into_iter();
        let arguments: Vec<DescribedArgument> =
            arguments.map(|(name, config)| DescribedArgument::new(name, config, &mut faults)).collect();
        let template = CommandTemplate::parse(&config, &arguments, &mut faults);
        let confirm = match &config.confirm {
            Some(Confirmation::Question(words)) => TemplateWord::parse(words, &arguments)
                .map_err(|what| faults.push(CommandFault::new(&["confirm"], what)))
                .ok(),
            Some(Confirmation::Enabled(true)) => TemplateWord::parse("", &[]).ok(),
            _ => None,
        };
        if let Some(name) = config
            .env
            .0
            .keys()
            .chain(&config.inherit)
            .chain(&config.caller_env)
            .find(|name| name.is_empty() || name.contains(['=', '\0']))
        {
            faults.push(CommandFault::new(&["env"], format!("`{name}` is not a valid variable name")));
        }
        let folder = config.cwd.as_ref().map_or_else(|| folder.to_owned(), |cwd| folder.join(cwd));
        match template {
            Some(template) if faults.is_empty() => {
                Ok(Self { name: name.to_owned(), config, arguments, template, confirm, folder })
            }
            _ => Err(faults),
        }
    }

    /// Returns the name of the tool.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the description of the command.
    pub fn description(&self) -> String {
        self.config.description.clone().unwrap_or_else(|| format!("Runs the command `{}`.", self.name))
    }

    /// Returns the JSON Schema of a call's arguments.
    pub fn schema(&self) -> Value {
        let properties: Map<String, Value> =
            self.arguments.iter().map(|argument| (argument.name.clone(), argument.schema())).collect();
        let required = self.arguments.iter().filter(|argument| argument.required);
        let required: Vec<&str> = required.map(|argument| argument.name.as_str()).collect();
        json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
    }

    /// Returns the template as in the file: the words with their placeholders, or the interpreter and the script.
    pub fn template(&self) -> Vec<String> {
        match (&self.template, &self.config.argv) {
            (CommandTemplate::Script(words), _) => words.clone(),
            (CommandTemplate::Argv(_), items) => {
                items.iter().flatten().flat_map(ArgvItem::words).cloned().collect()
            }
        }
    }

    /// Reports whether another command gets the same variables with the same values, which debug output does not have.
    pub fn has_same_variables(&self, other: &Self) -> bool {
        self.config.env == other.config.env
    }

    /// Returns the folder that the command runs in.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the names of the variables that the command gets in addition to the minimal environment and its
    /// arguments.
    pub fn environment(&self) -> Vec<&str> {
        let CommandConfig { env, inherit, caller_env, .. } = &self.config;
        env.0.keys().chain(inherit).chain(caller_env).map(String::as_str).collect()
    }

    /// Returns the tool annotations.
    pub fn annotations(&self) -> ToolAnnotations {
        ToolAnnotations {
            read_only: self.config.read_only,
            destructive: self.config.destructive,
            idempotent: self.config.idempotent,
            open_world: self.config.open_world,
            ..ToolAnnotations::default()
        }
    }

    /// Returns the limits of one run.
    pub fn limits(&self) -> RunLimits {
        let mut limits = RunLimits::default();
        limits.timeout = self.config.timeout().or(limits.timeout);
        limits.stdout_bytes = self.config.output_limit().unwrap_or(limits.stdout_bytes);
        limits
    }

    /// Prepares the command line of a call.
    ///
    /// # Errors
    /// [`DescribedError`] if no command line can express the call.
    pub fn prepare(&self, call: &Map<String, Value>) -> Result<PreparedCommand, DescribedError> {
        let values = argument_texts(&self.arguments, call)?;
        let (words, variables, file) = match &self.template {
            CommandTemplate::Argv(template) => (template.fill(&self.arguments, &values)?, Vec::new(), None),
            CommandTemplate::Script(words) => match self.config.pass {
                ArgumentPassing::Environment => (words.clone(), self.variables(&values, call)?, None),
                ArgumentPassing::File => {
                    let file = ArgumentsFile::write(&self.with_defaults(call))
                        .map_err(|error| DescribedError::File(error.to_string()))?;
                    let variable = (ARGUMENTS_FILE.to_owned(), file.path().to_string_lossy().into_owned());
                    (words.clone(), vec![variable], Some(file))
                }
            },
        };
        Ok(PreparedCommand { words, variables, values, file })
    }

    /// Returns the environment variables of a script's arguments; a repeated one is a JSON array.
    fn variables(
        &self,
        values: &[Option<Vec<String>>],
        call: &Map<String, Value>,
    ) -> Result<Vec<(String, String)>, DescribedError> {
        let mut variables = Vec::new();
        let call = self.with_defaults(call);
        for (argument, texts) in self.arguments.iter().zip(values) {
            let Some(texts) = texts else { continue };
            let value = match (argument.config.repeated, call.get(&argument.name)) {
                (true, Some(list)) => list.to_string(),
                _ => texts.first().cloned().unwrap_or_default(),
            };
            let bytes = value.len();
            if bytes > crate::tree::MAX_WORD_BYTES - 80 {
                return Err(DescribedError::TooLong { argument: argument.name.clone(), bytes });
            }
            variables.push((variable_name(&argument.name), value));
        }
        let bytes: usize = variables.iter().map(|(name, value)| name.len() + value.len() + 2).sum();
        if bytes > crate::tree::MAX_LINE_BYTES {
            Err(DescribedError::LineTooLong(bytes))
        } else {
            Ok(variables)
        }
    }

    fn with_defaults(&self, call: &Map<String, Value>) -> Map<String, Value> {
        let defaults = self
            .arguments
            .iter()
            .filter_map(|argument| Some((argument.name.clone(), argument.config.default.clone()?)));
        defaults.chain(call.clone()).collect()
    }

    /// Returns the question that the user has to confirm before the run, if there is one.
    pub fn question(&self, prepared: &PreparedCommand) -> Option<String> {
        let words = self.confirm.as_ref()?.display_text(&self.arguments, &prepared.values);
        if !words.is_empty() {
            return Some(words);
        }
        // Literal words of the file are not shown, since they may contain secrets such as a token.
        let given = self.arguments.iter().zip(&prepared.values).filter_map(|(argument, texts)| {
            Some(format!("{} = {}", argument.name, question_text::format_values(texts.as_ref()?)))
        });
        let given: Vec<String> = given.collect();
        Some(match given.is_empty() {
            true => format!("Run `{}`?", self.name),
            false => format!("Run `{}` with {}?", self.name, given.join(", ")),
        })
    }

    /// Removes the confirmation, for callers that have confirmed already.
    #[must_use]
    pub fn without_confirmation(mut self) -> Self {
        self.confirm = None;
        self
    }

    /// Converts the command to a tool.
    pub fn into_tool(self) -> Tool {
        self.into_tool_with_store(None)
    }

    /// Converts the command to a tool with a store for outputs that are too long for a result.
    pub(super) fn into_tool_with_store(self, output_store: Option<Arc<OutputStore>>) -> Tool {
        let tool = Tool::new(&self.name).description(self.description()).input_schema(self.schema());
        let tool = match &self.config.title {
            Some(title) => tool.title(title),
            None => tool,
        };
        let tool = tool.annotations(self.annotations());
        let command = Arc::new(self);
        tool.run_raw(move |context, arguments| {
            let (command, output_store) = (command.clone(), output_store.clone());
            async move { command.call(&context, &arguments, output_store).await }
        })
    }

    async fn call(
        &self,
        context: &Context,
        arguments: &RawJson,
        output_store: Option<Arc<OutputStore>>,
    ) -> Result<CallToolResult, ToolError> {
        let call: Map<String, Value> = arguments.decode()?;
        let prepared = self.prepare(&call)?;
        if let Some(question) = self.question(&prepared) {
            let Confirm(yes) = context.ask(ask(question).key("confirm")).await?;
            if !yes {
                return Err(ToolError::new("the user declined"));
            }
        }
        let child = CommandProcess {
            title: self.name.clone(),
            command: self.command_for(context, &prepared),
            limits: self.limits(),
            result_format: if self.config.output == OutputFormat::Json {
                ResultFormat::Json
            } else {
                ResultFormat::Text
            },
            output_store,
        };
        let result = child.run(context).await;
        drop(prepared.file);
        result
    }

    /// Returns the command with the variables of its caller.
    fn command_for(&self, context: &Context, prepared: &PreparedCommand) -> Command {
        let names = self.config.caller_env.iter();
        let variables = names.filter_map(|name| Some((name, context.env(name)?)));
        variables.fold(self.command(prepared), |command, (name, value)| command.env(name, value.expose()))
    }

    fn command(&self, prepared: &PreparedCommand) -> Command {
        let mut words = prepared.words.iter().map(OsString::from);
        let command = Command::new(words.next().unwrap_or_default()).args(words).current_dir(&self.folder);
        let command =
            self.config.inherit.iter().fold(CommandProcess::without_terminal(command), Command::inherit);
        let command =
            self.config.env.0.iter().fold(command, |command, (name, value)| command.env(name, value));
        prepared.variables.iter().fold(command, |command, (name, value)| command.env(name, value))
    }
}
