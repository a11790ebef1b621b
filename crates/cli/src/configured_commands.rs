//! Sections of a configuration file other than servers: commands, their policy, and manifests.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::{Path, PathBuf};

use trunkline_commands::{
    CommandConfig, DescribedCommand, DescribedSet, Manifests, ManifestsConfig, Policy, PolicyConfig,
};
use trunkline_config::{ConfigFile, ConfigProblem, ConfigSection, ConfigText, ConfigVariables};
use trunkline_server::Server;

use crate::config_failure::config_failure;
use crate::exit::CliFailure;
use crate::schema::did_you_mean;

/// What one file describes.
#[derive(Debug, Default)]
pub(crate) struct ConfiguredCommands {
    /// The file, if there is one.
    pub(crate) path: Option<PathBuf>,
    pub(crate) commands: DescribedSet,
    /// Commands that use an unset variable, with the problem.
    pub(crate) unavailable: Vec<(String, ConfigProblem)>,
    manifests: Option<Manifests>,
}

impl ConfiguredCommands {
    /// Reads the file that was named, or the one of this folder if it has one.
    ///
    /// # Errors
    /// All problems, each with its position.
    pub(crate) fn read(file: Option<&Path>) -> Result<Self, CliFailure> {
        Self::read_with(file, ConfigVariables::from_environment())
    }

    /// Reads the file for display: variables stay unexpanded, since their values may be secret.
    ///
    /// # Errors
    /// It makes no sense without its variables.
    pub(crate) fn read_unexpanded(file: Option<&Path>) -> Result<Self, CliFailure> {
        Self::read_with(file, ConfigVariables::unexpanded())
    }

    fn read_with(file: Option<&Path>, variables: ConfigVariables) -> Result<Self, CliFailure> {
        let found = match file {
            Some(path) => Some(ConfigFile::open(path, variables)).transpose(),
            None => ConfigFile::find(Path::new("."), variables),
        };
        let Some(file) = found.map_err(|error| config_failure(error.problems()))? else {
            return Ok(Self::default());
        };
        let mut problems = Vec::new();
        let described = Self::from_config(&file, &mut problems);
        if problems.is_empty() { Ok(described) } else { Err(config_failure(&problems)) }
    }

    /// Reads what a file describes, and adds what is wrong with it to `problems`.
    pub(crate) fn from_config(file: &ConfigFile, problems: &mut Vec<ConfigProblem>) -> Self {
        let folder = match file.path().parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        // Whole, so that it can be shown, and stays what it is wherever the process goes.
        let folder = &std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
        let env = file.shared_env().map_err(|problem| problems.push(problem)).unwrap_or_default();
        let mut parsed = ParsedCommands::default();
        if let Some(section) = file.section("commands") {
            parsed.read(&section, &env, folder, problems);
        }
        let policy =
            file.section("policy").map_or_else(Policy::new, |section| parse_policy(&section, problems));
        let manifests = file.section("manifests").map(|section| section.read::<ManifestsConfig>());
        let manifests = manifests.transpose().map_err(|problem| problems.push(problem)).ok().flatten();
        Self {
            path: Some(file.path().to_owned()),
            commands: DescribedSet::new(parsed.commands, policy),
            unavailable: parsed.unavailable,
            manifests: manifests.map(|manifests| manifests.manifests(folder)),
        }
    }

    /// Reports whether the file has anything to serve.
    pub(crate) fn is_empty(&self) -> bool {
        self.commands.commands().is_empty() && self.unavailable.is_empty() && self.manifests.is_none()
    }

    /// Returns the parts in which another file differs. They are compared by their debug output, which has everything but
    /// the values of variables: a served command is replaced by the same comparison.
    pub(crate) fn changed_sections(&self, other: &Self) -> Vec<&'static str> {
        let differs = |one: &dyn std::fmt::Debug, other: &dyn std::fmt::Debug| {
            format!("{one:?}") != format!("{other:?}")
        };
        let commands = (self.commands.commands(), other.commands.commands());
        let parts = [
            ("commands", differs(&commands.0, &commands.1) || !has_same_variables(commands)),
            ("policy", differs(self.commands.policy(), other.commands.policy())),
            ("manifests", differs(&self.manifests, &other.manifests)),
        ];
        parts.into_iter().filter_map(|(name, is_changed)| is_changed.then_some(name)).collect()
    }

    /// Adds what the file describes to a server.
    pub(crate) fn add_to(&self, server: Server) -> Server {
        let server = self.commands.add_to(server);
        match &self.manifests {
            Some(manifests) => manifests.add_to(server),
            None => server,
        }
    }

    /// Lists what the file serves, for display.
    pub(crate) fn names(&self) -> Vec<&str> {
        let policy = self.commands.policy();
        let commands = self.commands.commands().iter().map(DescribedCommand::name);
        let commands = commands.filter(|name| policy.decide(&[name]).is_allowed());
        commands.chain(self.manifests.as_ref().map(|_| "manifests")).collect()
    }

    /// Returns the rule by which a command is not offered.
    pub(crate) fn denying_rule(&self, name: &str) -> Option<String> {
        let command = self.commands.commands().iter().find(|command| command.name() == name)?;
        let decision = self.commands.policy().decide(&[command.name()]);
        (!decision.is_allowed()).then(|| decision.to_string())
    }

    /// Finds a command by its name.
    ///
    /// # Errors
    /// There is none, with the one that was probably meant, or it uses an unset variable.
    pub(crate) fn command(&self, name: &str) -> Result<&DescribedCommand, CliFailure> {
        if let Some((_, problem)) = self.unavailable.iter().find(|(unavailable, _)| unavailable == name) {
            return Err(config_failure(std::slice::from_ref(problem)));
        }
        let all = self.commands.commands();
        all.iter().find(|command| command.name() == name).ok_or_else(|| self.unknown_command(name))
    }

    fn unknown_command(&self, name: &str) -> CliFailure {
        let names: Vec<&str> = self.commands.commands().iter().map(DescribedCommand::name).collect();
        let failure = CliFailure::configuration(format!("no command named `{name}` is configured"));
        let hint = match (&self.path, did_you_mean(name, names.iter().copied())) {
            (None, _) => "no trunkline.toml in this folder; use `--config FILE`".to_owned(),
            (Some(_), Some(suggestion)) => suggestion,
            (Some(path), None) if names.is_empty() => format!("{} has no [commands.{name}]", path.display()),
            (Some(path), None) => format!("{} defines {}", path.display(), names.join(", ")),
        };
        failure.hint(hint)
    }
}

/// Reports whether the commands of two files get the same values of variables.
fn has_same_variables((one, other): (&[DescribedCommand], &[DescribedCommand])) -> bool {
    one.len() == other.len() && one.iter().zip(other).all(|(one, other)| one.has_same_variables(other))
}

/// The variables of all programs; an unset one is a problem of those that get it.
type SharedEnv = BTreeMap<String, Result<ConfigText, ConfigProblem>>;

#[derive(Default)]
struct ParsedCommands {
    commands: Vec<DescribedCommand>,
    unavailable: Vec<(String, ConfigProblem)>,
}

impl ParsedCommands {
    fn read(
        &mut self,
        section: &ConfigSection,
        env: &SharedEnv,
        folder: &Path,
        problems: &mut Vec<ConfigProblem>,
    ) {
        let tables = section.tables().unwrap_or_else(|problem| {
            problems.push(problem);
            Vec::new()
        });
        for table in tables {
            match read_command(&table, env) {
                Err(problem) if problem.unset_variable().is_some() => {
                    self.unavailable.push((table.name().to_owned(), problem));
                }
                Err(problem) => problems.push(problem),
                Ok(config) => match DescribedCommand::new(table.name(), config, folder) {
                    Ok(command) => self.commands.push(command),
                    Err(faults) => problems.extend(faults.into_iter().map(|fault| {
                        let keys: Vec<&str> =
                            fault.path.iter().map(String::as_str).filter(|key| !key.is_empty()).collect();
                        table.problem(&keys, fault.message)
                    })),
                },
            }
        }
    }
}

/// Reads a command, with the variables of all programs that it does not set itself.
fn read_command(table: &ConfigSection, env: &SharedEnv) -> Result<CommandConfig, ConfigProblem> {
    let mut config = table.read::<CommandConfig>()?;
    for (name, value) in env {
        if let Entry::Vacant(free) = config.env.0.entry(name.clone()) {
            free.insert(value.clone()?.expose().to_owned());
        }
    }
    Ok(config)
}

fn parse_policy(section: &ConfigSection, problems: &mut Vec<ConfigProblem>) -> Policy {
    let read = section.read::<PolicyConfig>().and_then(|config| {
        config.policy().map_err(|error| {
            let at = error.number.saturating_sub(1).to_string();
            section.problem(&["commands", &at], error.to_string())
        })
    });
    read.map_err(|problem| problems.push(problem)).unwrap_or_default()
}
