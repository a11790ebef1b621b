//! A configuration file: its servers, its other sections, and its keys without effect.

mod check;
mod containers;
mod dialect;
mod foreign;
#[cfg(unix)]
mod group;
mod invalid_server;
mod load;
mod shared_env;

use std::borrow::Cow;
use std::collections::btree_map::Entry;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(crate) use self::containers::containers;
use self::dialect::IgnoredKey;
pub use self::invalid_server::InvalidServer;
pub(crate) use self::load::{FileOrigin, load};
use crate::access::{self, AccessRule};
use crate::call_rate::CallLimits;
use crate::de::DecodeError;
use crate::find;
use crate::limits::MAX_CONFIG_BYTES;
use crate::node::{ConfigNode, NodeKind, TableEntry};
use crate::problem::{ConfigError, ConfigProblem};
use crate::section::ConfigSection;
use crate::server::{self, ServerConfig, ServerLocation};
use crate::source_position::SourcePosition;
use crate::suggestion::nearest;
use crate::syntax::{self, ConfigFormat};
use crate::variables::{ConfigVariables, VariableExpander};

/// The sections of `trunkline.toml`. Other crates decode those beside `servers`, as a [`ConfigSection`].
pub const SECTIONS: &[&str] = &[
    "servers",
    ENV_SECTION,
    "commands",
    "policy",
    "manifests",
    "serve",
    "store",
    "vault",
    "audit",
    "auth",
    "telemetry",
    "limits",
    ACCESS_SECTION,
];

/// The variables of all programs.
const ENV_SECTION: &str = "env";

/// The only section that is a list of tables.
const ACCESS_SECTION: &str = "access";

/// A parsed configuration file, TOML or JSON.
///
/// Servers and sections are decoded on access, so that a mistake in an unused one does no harm;
/// [`ConfigFile::servers`] decodes all of them.
#[derive(Clone, Debug)]
pub struct ConfigFile(Arc<FileContents>);

pub(crate) struct FileContents {
    pub(crate) path: PathBuf,
    pub(crate) text: String,
    pub(crate) root: ConfigNode,
    pub(crate) format: ConfigFormat,
    pub(crate) variables: ConfigVariables,
}

impl ConfigFile {
    /// Reads the file that the user named.
    ///
    /// # Errors
    /// The file cannot be read, other users can write it, it is too long, it is not valid TOML or JSON, or it has an
    /// unknown section.
    pub fn open(path: impl AsRef<Path>, variables: ConfigVariables) -> Result<Self, ConfigError> {
        Self::load(path.as_ref(), variables, MAX_CONFIG_BYTES, FileOrigin::Named)
    }

    pub(crate) fn load(
        path: &Path,
        variables: ConfigVariables,
        most: u64,
        chosen: FileOrigin,
    ) -> Result<Self, ConfigError> {
        let text = load(path, most, chosen)?;
        Self::parse(path, &text, variables)
    }

    /// Reads a text as if it were in a file of this name.
    ///
    /// # Errors
    /// The errors of [`ConfigFile::open`] about the content.
    pub fn parse(
        path: impl Into<PathBuf>,
        text: &str,
        variables: ConfigVariables,
    ) -> Result<Self, ConfigError> {
        let path = path.into();
        let format = ConfigFormat::of(&path);
        let text = text.strip_prefix('\u{feff}').unwrap_or(text).to_owned();
        let root = syntax::parse(format, &text).map_err(|error| {
            foreign::other_format(&path, format, &text).unwrap_or_else(|| {
                ConfigProblem::new(&path, error.message)
                    .at(SourcePosition::from_offset(&text, error.span.start))
            })
        })?;
        let file = Self(Arc::new(FileContents { path, text, root, format, variables }));
        file.check_root()?;
        Ok(file)
    }

    /// Reads the file that applies in a folder, if there is one; see [`find::FOLDER_FILE_NAMES`](crate::find::FOLDER_FILE_NAMES).
    ///
    /// # Errors
    /// As those of [`ConfigFile::open`]. A file of another user is rejected even for the superuser.
    pub fn find(folder: impl AsRef<Path>, variables: ConfigVariables) -> Result<Option<Self>, ConfigError> {
        let found = find::find_in_folder(folder.as_ref());
        found.map(|path| Self::open_discovered(path, variables)).transpose()
    }

    /// Reads a file that was discovered and not named by the user.
    ///
    /// # Errors
    /// As those of [`ConfigFile::find`].
    pub fn open_discovered(path: impl AsRef<Path>, variables: ConfigVariables) -> Result<Self, ConfigError> {
        Self::load(path.as_ref(), variables, MAX_CONFIG_BYTES, FileOrigin::Discovered)
    }

    /// Returns the servers that Claude Code stores for one project in its own file, as a separate file.
    pub fn for_project(&self, folder: &Path) -> Option<Self> {
        let root = self.0.root.at(&["projects", folder.to_str()?])?.clone();
        let FileContents { path, text, format, variables, .. } = &*self.0;
        let (path, text, format, variables) = (path.clone(), text.clone(), *format, variables.clone());
        let project = Self(Arc::new(FileContents { path, text, root, format, variables }));
        project.check_root().is_ok().then_some(project)
    }

    /// Returns the texts of a list below these keys.
    pub(crate) fn names_at(&self, keys: &[&str]) -> Vec<String> {
        let list = self.0.root.at(keys).map(|node| &node.kind);
        let Some(NodeKind::Array(elements)) = list else { return Vec::new() };
        elements.iter().filter_map(ConfigNode::text).map(str::to_owned).collect()
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// Returns the format of the file.
    pub fn format(&self) -> ConfigFormat {
        self.0.format
    }

    /// Returns the text as it was read, without a byte order mark.
    pub fn text(&self) -> &str {
        &self.0.text
    }

    pub(crate) fn root(&self) -> &ConfigNode {
        &self.0.root
    }

    /// Returns the names of its servers, in the order of the file.
    pub fn server_names(&self) -> Vec<&str> {
        self.server_entries().map(|entry| &*entry.key).collect()
    }

    /// Reads one server.
    ///
    /// # Errors
    /// There is no server of this name, or its definition is invalid; other servers do not matter.
    pub fn server(&self, name: &str) -> Result<ServerConfig, ConfigError> {
        let Some(entry) = self.server_entries().find(|entry| entry.key == name) else {
            return Err(self.unknown_server(name).into());
        };
        self.read_server(entry, &self.expander()).map_err(Into::into)
    }

    /// Reads all servers, including disabled ones, in the order of the file. A disabled one may have an unset
    /// variable; see [`ServerConfig::unset_variable`].
    ///
    /// # Errors
    /// The problems of all servers.
    pub fn servers(&self) -> Result<Vec<ServerConfig>, ConfigError> {
        let (servers, invalid) = self.valid_and_invalid_servers();
        ConfigError::of(invalid.into_iter().map(|server| server.problem)).map_or(Ok(servers), Err)
    }

    /// Reads all valid servers, and returns the others with their problems.
    pub fn valid_and_invalid_servers(&self) -> (Vec<ServerConfig>, Vec<InvalidServer>) {
        let expander = self.expander();
        let (mut servers, mut invalid) = (Vec::new(), Vec::new());
        for entry in self.server_entries() {
            match self.read_listed(entry, &expander) {
                Ok(server) => servers.push(server),
                Err(problem) => {
                    let table = self.server_table(entry);
                    let location = self.read_unexpanded(entry).ok().map(|server| server.location);
                    let server = InvalidServer::new(&entry.key, &table, problem);
                    invalid.push(InvalidServer { location, ..server });
                }
            }
        }
        (servers, invalid)
    }

    /// Returns a section that another crate decodes, if the file has it. A client's `mcp.json` has none.
    pub fn section(&self, name: &str) -> Option<ConfigSection> {
        let has = !self.0.format.is_client() && self.0.root.get(name).is_some();
        has.then(|| ConfigSection::new(Arc::clone(&self.0), vec![name.to_owned()]))
    }

    /// Reads the access rules, in the order of the file; none, if it has none.
    ///
    /// # Errors
    /// The first mistake, with its position and its key.
    pub fn access_rules(&self) -> Result<Vec<AccessRule>, ConfigProblem> {
        self.section(ACCESS_SECTION).map_or_else(|| Ok(Vec::new()), |section| access::read_rules(&section))
    }

    /// Reads the limits on calls; none, if the file has none.
    ///
    /// # Errors
    /// The first mistake, with its position and its key.
    pub fn call_limits(&self) -> Result<CallLimits, ConfigProblem> {
        self.section("limits").map_or_else(|| Ok(CallLimits::default()), |section| section.read())
    }

    /// Returns the keys without effect, each with its position: those of other clients and those of earlier versions.
    pub fn warnings(&self) -> Vec<ConfigProblem> {
        let (mut remarks, of_server): (_, fn(&str, &ConfigNode) -> Vec<IgnoredKey>) = match self.0.format {
            ConfigFormat::Toml => (Vec::new(), dialect::ignored_server_keys),
            // The files of other clients are full of settings that have nothing to do with servers.
            ConfigFormat::Yaml | ConfigFormat::ClientToml => {
                (Vec::new(), |name, server| dialect::normalized(name, server).1)
            }
            ConfigFormat::Json => {
                (dialect::ignored_root_keys(&self.0.root), |name, server| dialect::normalized(name, server).1)
            }
        };
        remarks.extend(self.server_entries().flat_map(|entry| of_server(&entry.key, &entry.value)));
        remarks.sort_by_key(|remark| remark.offset);
        remarks.into_iter().map(|remark| self.warning(remark)).collect()
    }

    fn warning(&self, remark: IgnoredKey) -> ConfigProblem {
        let note = self.problem_at(remark.offset, remark.reason).key(remark.key);
        match remark.server {
            Some(server) => note.server(server),
            None => note,
        }
    }

    fn server_entries(&self) -> impl Iterator<Item = &TableEntry> {
        containers::server_entries(&self.0.root, self.0.format)
    }

    /// Reads a server for a list of all: an unset variable of a disabled server is no error.
    fn read_listed(
        &self,
        entry: &TableEntry,
        expander: &VariableExpander<'_>,
    ) -> Result<ServerConfig, ConfigProblem> {
        drop(expander.take_unset());
        let read = self.read_server(entry, expander);
        let (true, Some(unset)) = (read.is_err(), expander.take_unset()) else { return read };
        match self.read_unexpanded(entry) {
            Ok(server) if !server.enabled => Ok(ServerConfig { unset_variable: Some(unset), ..server }),
            _ => read,
        }
    }

    fn read_unexpanded(&self, entry: &TableEntry) -> Result<ServerConfig, ConfigProblem> {
        let unexpanded = ConfigVariables::unexpanded();
        self.read_server(entry, &self.0.expander_of(&unexpanded))
    }

    fn read_server(
        &self,
        entry: &TableEntry,
        expander: &VariableExpander<'_>,
    ) -> Result<ServerConfig, ConfigProblem> {
        let read = server::read(&entry.key, &self.server_table(entry), self.0.folder(), expander);
        let mut server = read.map_err(|fault| {
            let fault = match self.0.format.is_client() {
                true => dialect::in_words_of_the_client(fault, &entry.value),
                false => fault,
            };
            self.0.problem(&fault, &[]).server(&entry.key)
        })?;
        // A server that is read as it is written has only what is written there.
        if let (ServerLocation::Program(program), false) = (&mut server.location, expander.is_disabled()) {
            for (name, value) in self.shared_env()? {
                // An unset variable is a problem only of programs that get it.
                if let Entry::Vacant(free) = program.env.entry(name) {
                    free.insert(value?);
                }
            }
        }
        Ok(server)
    }

    /// Returns the table of a server in the form of `trunkline.toml`.
    fn server_table<'e>(&self, entry: &'e TableEntry) -> Cow<'e, ConfigNode> {
        match self.0.format.is_client() {
            false => Cow::Borrowed(&entry.value),
            true => Cow::Owned(dialect::normalized(&entry.key, &entry.value).0),
        }
    }

    pub(crate) fn unknown_server(&self, name: &str) -> ConfigProblem {
        let names = self.server_names();
        let what = match nearest(name, names.iter().copied()) {
            Some(near) => format!("has no server `{name}`; did you mean `{near}`?"),
            None if names.is_empty() => format!("has no server `{name}`; it has no servers"),
            None => format!("has no server `{name}`; it has `{}`", names.join("`, `")),
        };
        ConfigProblem::new(&self.0.path, what)
    }

    fn problem_at(&self, offset: usize, what: String) -> ConfigProblem {
        ConfigProblem::new(&self.0.path, what).at(SourcePosition::from_offset(&self.0.text, offset))
    }

    fn expander(&self) -> VariableExpander<'_> {
        self.0.expander()
    }
}

/// Omits the text, which may contain secrets.
impl fmt::Debug for FileContents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileContents")
            .field("path", &self.path)
            .field("format", &self.format)
            .finish_non_exhaustive()
    }
}

impl FileContents {
    /// Returns the folder that the file is about: where it is, or for a client's own folder in a project, the project.
    fn folder(&self) -> &Path {
        let folder = self.path.parent().unwrap_or(Path::new(""));
        const OF_CLIENTS: [&str; 9] =
            [".vscode", ".cursor", ".gemini", ".zed", ".roo", ".amazonq", ".kiro", ".codex", ".qwen"];
        let of_client = |name: &std::ffi::OsStr| OF_CLIENTS.iter().any(|client| name == *client);
        if folder.file_name().is_some_and(of_client) { folder.parent().unwrap_or(folder) } else { folder }
    }

    pub(crate) fn expander(&self) -> VariableExpander<'_> {
        self.expander_of(&self.variables)
    }

    fn expander_of<'v>(&self, variables: &'v ConfigVariables) -> VariableExpander<'v> {
        let workspace = self.format.is_client().then(|| {
            let folder = self.folder();
            std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned())
        });
        VariableExpander::new(variables, workspace)
    }

    /// Creates a problem from a decode error below some keys.
    pub(crate) fn problem(&self, fault: &DecodeError, above: &[String]) -> ConfigProblem {
        let keys: Vec<String> =
            above.iter().cloned().chain(Some(fault.key()).filter(|key| !key.is_empty())).collect();
        let problem = ConfigProblem::new(&self.path, fault.message.clone()).key(keys.join("."));
        match &fault.span {
            Some(span) => problem.at(SourcePosition::from_offset(&self.text, span.start)),
            None => problem,
        }
    }
}
