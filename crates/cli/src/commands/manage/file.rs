use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};
use trunkline_config::{BackupMode, ConfigEditor, ConfigFile, ConfigVariables, SaveOutcome, find};

use crate::config_failure::config_failure;
use crate::exit::CliFailure;

/// The configuration file, and the output format.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct FileArgs {
    /// Config file [default: the one in this folder]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) config: Option<PathBuf>,
    /// Print the result as JSON on one line
    #[arg(long)]
    pub(crate) json: bool,
}

impl FileArgs {
    /// Returns the file that was named, or the one of this folder.
    ///
    /// # Errors
    /// There is none.
    pub(crate) fn path(&self) -> Result<PathBuf, CliFailure> {
        self.named_or_found().ok_or_else(|| {
            CliFailure::configuration("no trunkline.toml or mcp.json in this folder")
                .hint("create one with `trunkline add` or `trunkline import`, or use `--config FILE`")
        })
    }

    /// Returns the file that was named, or the one of this folder, or the one that would be made here.
    pub(crate) fn path_or_new(&self) -> PathBuf {
        self.named_or_found().unwrap_or_else(|| PathBuf::from("trunkline.toml"))
    }

    fn named_or_found(&self) -> Option<PathBuf> {
        self.config.clone().or_else(|| find::find_in_folder(Path::new("")))
    }

    /// Reads the file with unexpanded variables.
    ///
    /// # Errors
    /// There is none, or it cannot be used.
    pub(crate) fn read(&self) -> Result<ConfigFile, CliFailure> {
        self.read_with(ConfigVariables::unexpanded())
    }

    /// Reads the file with the variables of this process.
    ///
    /// # Errors
    /// There is none, or it cannot be used.
    pub(crate) fn read_expanded(&self) -> Result<ConfigFile, CliFailure> {
        self.read_with(ConfigVariables::from_environment())
    }

    fn read_with(&self, variables: ConfigVariables) -> Result<ConfigFile, CliFailure> {
        ConfigFile::open(self.path()?, variables).map_err(|error| config_failure(error.problems()))
    }

    /// Opens the file in order to change it.
    ///
    /// # Errors
    /// There is none, or it cannot be used.
    pub(crate) fn edit(&self) -> Result<ConfigEditor, CliFailure> {
        Ok(ConfigEditor::open(self.path()?)?)
    }

    /// Opens the file in order to add to it; it need not be there yet.
    ///
    /// # Errors
    /// There is one, and it cannot be used.
    pub(crate) fn edit_or_new(&self) -> Result<ConfigEditor, CliFailure> {
        let path = self.path_or_new();
        // VS Code has a word of its own for what the others call `mcpServers`.
        let in_vscode = path.parent().is_some_and(|folder| folder.ends_with(".vscode"));
        let editor = ConfigEditor::open_or_new(&path)?;
        Ok(if in_vscode { editor.container("servers") } else { editor })
    }
}

/// Writes the file, and reports whether that changed anything.
///
/// # Errors
/// It cannot be written, or another program has changed it.
pub(super) fn save(editor: ConfigEditor) -> Result<bool, CliFailure> {
    Ok(editor.save(BackupMode::Skip)? != SaveOutcome::Unchanged)
}
