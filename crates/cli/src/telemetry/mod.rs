//! The export of traces and metrics: the table `[telemetry]` and the environment variables of OpenTelemetry.
//!
//! # Invariants
//!
//! - Nothing is exported unless an address is configured: `telemetry_is_off_without_an_endpoint`.
//! - A project's file sends nothing before it is trusted: `settings_of_an_untrusted_file_write_and_read_nothing`.

mod table;

use std::path::Path;
use std::time::Duration;

use trunkline_config::{ConfigFile, ConfigFormat, ConfigVariables};
use trunkline_hub::events::HubEvents;
use trunkline_telemetry::{Telemetry, TelemetrySettings};

pub(crate) use self::table::TelemetryOptions;
#[cfg(test)]
pub(crate) use self::table::TelemetryTable;
use crate::config_failure::config_failure;
use crate::exit::CliFailure;
use crate::trust::check_setting;

/// The time for the last export at shutdown.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

/// Reads the table of a configuration file, for a command that serves nothing else of it.
///
/// # Errors
/// What is wrong with the file or the table, or that the table is not trusted.
pub(crate) fn options_of_config(path: Option<&Path>) -> Result<TelemetryOptions, CliFailure> {
    let Some(path) = path.filter(|path| ConfigFormat::of(path) == ConfigFormat::Toml) else {
        return Ok(TelemetryOptions::default());
    };
    let file = ConfigFile::open(path, ConfigVariables::from_environment());
    let file = file.map_err(|error| config_failure(error.problems()))?;
    let Some(section) = file.section("telemetry") else { return Ok(TelemetryOptions::default()) };
    let options = TelemetryOptions::from_section(&section).map_err(|problem| config_failure(&[problem]))?;
    check_setting(&file, "[telemetry]")?;
    Ok(options)
}

/// Returns what is exported; `None` for nothing. A variable that cannot be used switches it off, with a warning: it may be
/// meant for another program.
pub(crate) fn settings(options: &TelemetryOptions) -> Option<TelemetrySettings> {
    let mut settings = options.settings().clone();
    let variable = |name: &str| std::env::var(name).ok();
    if let Err(error) = settings.apply_environment(variable) {
        tracing::warn!("no traces and metrics are exported: {error}");
        return None;
    }
    settings.is_enabled().then_some(settings)
}

/// The export of a process, if it exports anything.
#[derive(Debug, Default)]
pub(crate) struct ProcessTelemetry(Option<Telemetry>);

impl ProcessTelemetry {
    /// Begins to export what happens at a hub.
    pub(crate) fn start(events: &HubEvents, settings: Option<&TelemetrySettings>) -> Self {
        let started = settings.map(|settings| Telemetry::start(events, settings));
        Self(started.and_then(|started| match started {
            Ok(telemetry) => {
                tracing::info!("exporting traces and metrics");
                Some(telemetry)
            }
            Err(error) => {
                tracing::warn!("no traces and metrics are exported: {error}");
                None
            }
        }))
    }

    /// Exports what is left.
    pub(crate) async fn shutdown(self) {
        if let Some(telemetry) = self.0 {
            telemetry.shutdown(SHUTDOWN_TIMEOUT).await;
        }
    }
}
