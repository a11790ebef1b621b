use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use trunkline_config::{ConfigProblem, ConfigSection, ConfigText};
use trunkline_hub::events::RootSampling;
use trunkline_telemetry::TelemetrySettings;

/// The table `[telemetry]`.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub(crate) struct TelemetryTable {
    /// The address of an OpenTelemetry collector, such as `http://127.0.0.1:4318`. Without it nothing is exported.
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    endpoint: Option<ConfigText>,
    /// The headers of each request, such as a key.
    #[cfg_attr(test, schemars(with = "BTreeMap<String, String>"))]
    headers: BTreeMap<String, ConfigText>,
    /// The name of this hub in traces and metrics; by default `trunkline`.
    service_name: Option<String>,
    /// The part of the traces that is exported, from 0 to 1, unless the client of a call has decided.
    #[cfg_attr(test, schemars(range(min = 0, max = 1)))]
    sample: Option<f64>,
    /// A PEM file of certificate authorities, relative to the folder of the configuration.
    ca: Option<String>,
}

/// What the table `[telemetry]` sets.
#[derive(Clone, Debug, Default)]
pub(crate) struct TelemetryOptions {
    settings: TelemetrySettings,
    /// The expanded table, by which a change is noticed. Its texts are not shown.
    written: Vec<ConfigText>,
}

impl PartialEq for TelemetryOptions {
    fn eq(&self, other: &Self) -> bool {
        self.written == other.written
            && self.settings.sampler == other.settings.sampler
            && self.settings.certificate == other.settings.certificate
    }
}

impl TelemetryOptions {
    /// Decodes the table.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn from_section(section: &ConfigSection) -> Result<Self, ConfigProblem> {
        let table = section.read::<TelemetryTable>()?;
        let folder = section.file().parent().unwrap_or(Path::new(""));
        let mut settings = TelemetrySettings::default();
        let mut written = Vec::new();
        if let Some(endpoint) = table.endpoint {
            let set = settings.set_endpoint(endpoint.expose());
            set.map_err(|error| section.problem(&["endpoint"], error.to_string()))?;
            written.push(endpoint);
        }
        for (name, value) in table.headers {
            let added = settings.add_header(&name, value.expose());
            added.map_err(|error| section.problem(&["headers", &name], error.to_string()))?;
            written.extend([ConfigText::new(&*name), value]);
        }
        if let Some(name) = table.service_name {
            let set = settings.set_resource("service.name", &name);
            set.map_err(|error| section.problem(&["service_name"], error.to_string()))?;
            written.push(ConfigText::new(&*name));
        }
        if let Some(sample) = table.sample {
            settings.sampler.root = RootSampling::ratio(sample)
                .ok_or_else(|| section.problem(&["sample"], "it is not a number from 0 to 1"))?;
        }
        settings.certificate = table.ca.map(|ca| folder.join(ca));
        Ok(Self { settings, written })
    }

    pub(super) fn settings(&self) -> &TelemetrySettings {
        &self.settings
    }
}

#[cfg(test)]
mod tests {
    use trunkline_config::{ConfigFile, ConfigVariables};

    use super::*;

    fn read(table: &str) -> Result<TelemetryOptions, ConfigProblem> {
        let variables = ConfigVariables::fixed([("KEY", "sentinel")]);
        let file =
            ConfigFile::parse("/c/trunkline.toml", &format!("[telemetry]\n{table}"), variables).unwrap();
        TelemetryOptions::from_section(&file.section("telemetry").unwrap())
    }

    #[test]
    fn table_sets_the_collector_and_shows_no_secret() {
        let options = read(
            "endpoint = \"https://c.example\"\nheaders = { authorization = \"Bearer ${KEY}\" }\nservice_name = \"hub\"\n\
             sample = 0.5\nca = \"ca.pem\"\n",
        )
        .unwrap();
        assert!(options.settings.is_enabled());
        assert_eq!(options.settings.certificate.as_deref(), Some(Path::new("/c/ca.pem")));
        assert_eq!(options.settings.sampler.root, RootSampling::ratio(0.5).unwrap());
        let shown = format!("{options:?}");
        assert!(!shown.contains("sentinel"), "{shown}");
        assert!(!read("").unwrap().settings.is_enabled());
        assert!(options != read("endpoint = \"https://c.example\"").unwrap());
        assert!(options == options.clone());
    }

    #[test]
    fn mistakes_in_the_table_have_a_position() {
        for (table, place) in [
            ("endpoint = \"collector:4318\"", "endpoint"),
            ("endpoint = \"http://c\"\nheaders = { \"a b\" = \"sentinel\" }", "a b"),
            ("sample = 2.0", "sample"),
            ("endpoints = \"x\"", "endpoint"),
        ] {
            let problem = read(table).unwrap_err().to_string();
            assert!(problem.contains(place) && !problem.contains("sentinel"), "{problem}");
        }
    }
}
