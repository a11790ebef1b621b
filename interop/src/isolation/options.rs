use std::path::PathBuf;

/// What the campaign is run with.
#[derive(Debug, Default)]
pub(crate) struct IsolationOptions {
    /// The endpoint of the hub, over HTTP.
    pub(crate) url: String,
    pub(crate) calls: u64,
    /// Whether all clients are one user, who may share processes.
    pub(crate) is_shared: bool,
    /// The folder with one folder for each client, which is its root.
    pub(crate) scratch: PathBuf,
    /// The servers behind the hub that have the tool `examine`.
    pub(crate) servers: Vec<String>,
}

impl IsolationOptions {
    /// Reads the arguments of the command.
    ///
    /// # Errors
    /// One is unknown or missing.
    pub(crate) fn read(mut arguments: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut options = Self::default();
        while let Some(name) = arguments.next() {
            let mut value = || arguments.next().ok_or(format!("{name} needs a value"));
            match &*name {
                "--url" => options.url = value()?,
                "--calls" => {
                    options.calls =
                        value()?.parse().map_err(|error| format!("{name} must be a number: {error}"))?;
                }
                "--local" => options.is_shared = true,
                "--strangers" => options.is_shared = false,
                "--scratch" => options.scratch = value()?.into(),
                "--servers" => options.servers = value()?.split(',').map(str::to_owned).collect(),
                _ => return Err(format!("unknown argument {name}")),
            }
        }
        match options.url.is_empty() || options.servers.is_empty() {
            true => Err("--url and --servers are missing".to_owned()),
            false => Ok(options),
        }
    }
}
