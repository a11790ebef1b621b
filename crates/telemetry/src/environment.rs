//! The standard environment variables of OpenTelemetry.

use std::time::Duration;

use trunkline_hub::events::{RootSampling, TraceSampler};

use crate::settings::{TelemetryEndpoint, TelemetryError, TelemetrySettings};

/// A variable that cannot be used. Its value is not in it, since it may be a secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name}: {problem}")]
pub struct EnvironmentError {
    /// The variable.
    pub name: String,
    /// What is wrong with it.
    pub problem: String,
}

impl TelemetrySettings {
    /// Applies the variables of OpenTelemetry, which take precedence over what is set already. Empty ones count as unset.
    ///
    /// # Errors
    /// The first variable that cannot be used.
    pub fn apply_environment(
        &mut self,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<(), EnvironmentError> {
        let variables = TelemetryVariables { read: &variable };
        if variables.get("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true")) {
            (self.traces, self.metrics) = (None, None);
            return Ok(());
        }
        if variables.get("OTEL_EXPORTER_OTLP_PROTOCOL").is_some_and(|protocol| protocol != "http/protobuf") {
            let what = "only http/protobuf is supported, which collectors have at port 4318";
            return Err(problem("OTEL_EXPORTER_OTLP_PROTOCOL", &what));
        }
        if let Some(base) = variables.get("OTEL_EXPORTER_OTLP_ENDPOINT") {
            self.replace_endpoints(&base).map_err(|error| problem("OTEL_EXPORTER_OTLP_ENDPOINT", &error))?;
        }
        variables.endpoint("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", &mut self.traces)?;
        variables.endpoint("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", &mut self.metrics)?;
        variables.headers("OTEL_EXPORTER_OTLP_HEADERS", [&mut self.traces, &mut self.metrics])?;
        variables.headers("OTEL_EXPORTER_OTLP_TRACES_HEADERS", [&mut self.traces])?;
        variables.headers("OTEL_EXPORTER_OTLP_METRICS_HEADERS", [&mut self.metrics])?;
        for (name, endpoint) in
            [("OTEL_TRACES_EXPORTER", &mut self.traces), ("OTEL_METRICS_EXPORTER", &mut self.metrics)]
        {
            if variables.get(name).is_some_and(|value| value == "none") {
                *endpoint = None;
            }
        }
        if let Some(path) = variables.get("OTEL_EXPORTER_OTLP_CERTIFICATE") {
            self.certificate = Some(path.into());
        }
        variables.resource(self)?;
        variables.sampler(&mut self.sampler)?;
        for (name, time) in [
            ("OTEL_EXPORTER_OTLP_TIMEOUT", &mut self.timeout),
            ("OTEL_BSP_SCHEDULE_DELAY", &mut self.span_delay),
            ("OTEL_METRIC_EXPORT_INTERVAL", &mut self.metric_interval),
        ] {
            if let Some(millis) = variables.number(name)? {
                *time = Duration::from_millis(millis).min(MAX_INTERVAL);
            }
        }
        for (name, count) in [
            ("OTEL_BSP_MAX_QUEUE_SIZE", &mut self.queue_spans),
            ("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", &mut self.batch_spans),
        ] {
            if let Some(number) = variables.number(name)? {
                *count = usize::try_from(number).unwrap_or(usize::MAX).min(MAX_QUEUE_SPANS);
            }
        }
        self.batch_spans = self.batch_spans.min(self.queue_spans);
        Ok(())
    }

    /// Sets both addresses and keeps the headers.
    fn replace_endpoints(&mut self, base: &str) -> Result<(), TelemetryError> {
        let headers = |endpoint: &Option<TelemetryEndpoint>| {
            endpoint.as_ref().map(|endpoint| endpoint.headers.clone()).unwrap_or_default()
        };
        let (traces, metrics) = (headers(&self.traces), headers(&self.metrics));
        self.set_endpoint(base)?;
        for (endpoint, kept) in [(&mut self.traces, traces), (&mut self.metrics, metrics)] {
            if let Some(endpoint) = endpoint {
                endpoint.headers = kept;
            }
        }
        Ok(())
    }
}

/// The longest time that can be set; the clock cannot represent any.
const MAX_INTERVAL: Duration = Duration::from_secs(24 * 60 * 60);

/// The most spans that a queue may be set to.
const MAX_QUEUE_SPANS: usize = 65_536;

fn problem(name: &str, problem: &dyn std::fmt::Display) -> EnvironmentError {
    EnvironmentError { name: name.to_owned(), problem: problem.to_string() }
}

/// The variables of the process.
struct TelemetryVariables<'a> {
    read: &'a dyn Fn(&str) -> Option<String>,
}

impl TelemetryVariables<'_> {
    fn get(&self, name: &str) -> Option<String> {
        (self.read)(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
    }

    fn number(&self, name: &str) -> Result<Option<u64>, EnvironmentError> {
        let parse = |value: String| value.parse().ok().filter(|number| *number > 0);
        self.get(name)
            .map(|value| parse(value).ok_or_else(|| problem(name, &"it is not a positive number")))
            .transpose()
    }

    /// Sets a whole address, and keeps the headers.
    fn endpoint(&self, name: &str, endpoint: &mut Option<TelemetryEndpoint>) -> Result<(), EnvironmentError> {
        let Some(url) = self.get(name) else { return Ok(()) };
        let mut fresh = TelemetryEndpoint::at(&url).map_err(|error| problem(name, &error))?;
        if let Some(previous) = endpoint.take() {
            fresh.headers = previous.headers;
        }
        *endpoint = Some(fresh);
        Ok(())
    }

    fn headers<const N: usize>(
        &self,
        name: &str,
        endpoints: [&mut Option<TelemetryEndpoint>; N],
    ) -> Result<(), EnvironmentError> {
        let Some(list) = self.get(name) else { return Ok(()) };
        let pairs = pairs(&list).ok_or_else(|| problem(name, &"it is not a list of key=value"))?;
        for endpoint in endpoints.into_iter().flatten() {
            for (key, value) in &pairs {
                endpoint.add_header(key, value).map_err(|error| problem(name, &error))?;
            }
        }
        Ok(())
    }

    fn resource(&self, settings: &mut TelemetrySettings) -> Result<(), EnvironmentError> {
        const NAME: &str = "OTEL_RESOURCE_ATTRIBUTES";
        if let Some(list) = self.get(NAME) {
            let pairs = pairs(&list).ok_or_else(|| problem(NAME, &"it is not a list of key=value"))?;
            for (key, value) in pairs {
                settings.set_resource(&key, &value).map_err(|error| problem(NAME, &error))?;
            }
        }
        if let Some(name) = self.get("OTEL_SERVICE_NAME") {
            let set = settings.set_resource("service.name", &name);
            set.map_err(|error| problem("OTEL_SERVICE_NAME", &error))?;
        }
        Ok(())
    }

    fn sampler(&self, sampler: &mut TraceSampler) -> Result<(), EnvironmentError> {
        const NAME: &str = "OTEL_TRACES_SAMPLER";
        const ARGUMENT: &str = "OTEL_TRACES_SAMPLER_ARG";
        let Some(name) = self.get(NAME) else { return Ok(()) };
        let root = match name.trim_start_matches("parentbased_") {
            "always_on" => RootSampling::Always,
            "always_off" => RootSampling::Never,
            "traceidratio" => {
                let ratio = self.get(ARGUMENT).map_or(Ok(1.0), |text| text.parse::<f64>());
                let ratio = ratio.ok().and_then(RootSampling::ratio);
                ratio.ok_or_else(|| problem(ARGUMENT, &"it is not a number from 0 to 1"))?
            }
            _ => {
                return Err(problem(
                    NAME,
                    &"only always_on, always_off and traceidratio are known, each also with parentbased_ before it",
                ));
            }
        };
        *sampler = TraceSampler { follows_parent: name.starts_with("parentbased_"), root };
        Ok(())
    }
}

/// Reads `key=value,key=value` with percent-encoding.
fn pairs(list: &str) -> Option<Vec<(String, String)>> {
    let parts = list.split(',').map(str::trim).filter(|part| !part.is_empty());
    parts
        .map(|part| {
            let (key, value) = part.split_once('=')?;
            let (key, value) = (key.trim(), value.trim());
            (!key.is_empty()).then(|| Some((decoded(key)?, decoded(value)?)))?
        })
        .collect()
}

fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let digit = |byte: u8| char::from(byte).to_digit(16);
            let (high, low) = (digit(rest.next()?)?, digit(rest.next()?)?);
            bytes.push(u8::try_from(high * 16 + low).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn applied(
        settings: TelemetrySettings,
        variables: &[(&str, &str)],
    ) -> Result<TelemetrySettings, EnvironmentError> {
        let mut settings = settings;
        let read = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        settings.apply_environment(read).map(|()| settings)
    }

    fn url(endpoint: Option<&TelemetryEndpoint>) -> Option<String> {
        endpoint.map(|endpoint| endpoint.url.to_full_string())
    }

    #[test]
    fn telemetry_is_off_without_an_endpoint() {
        for variables in [
            &[][..],
            &[("OTEL_SERVICE_NAME", "x"), ("OTEL_EXPORTER_OTLP_ENDPOINT", " ")],
            &[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318"), ("OTEL_SDK_DISABLED", "TRUE")],
            &[
                ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318"),
                ("OTEL_TRACES_EXPORTER", "none"),
                ("OTEL_METRICS_EXPORTER", "none"),
            ],
        ] {
            assert!(!applied(TelemetrySettings::default(), variables).unwrap().is_enabled(), "{variables:?}");
        }
    }

    #[test]
    fn variables_override_what_is_set() {
        let mut file = TelemetrySettings::default();
        file.set_endpoint("http://file:4318").unwrap();
        file.add_header("x-key", "of-the-file").unwrap();
        let settings = applied(
            file,
            &[
                ("OTEL_EXPORTER_OTLP_ENDPOINT", "https://c/base/"),
                ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "http://m:1/metrics"),
                ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20a%3Db, x-two=2"),
                ("OTEL_EXPORTER_OTLP_METRICS_HEADERS", "x-two=3"),
                ("OTEL_RESOURCE_ATTRIBUTES", "service.name=a,deployment.environment.name=test%2Cb"),
                ("OTEL_SERVICE_NAME", "hub"),
                ("OTEL_TRACES_SAMPLER", "parentbased_traceidratio"),
                ("OTEL_TRACES_SAMPLER_ARG", "0.25"),
                ("OTEL_EXPORTER_OTLP_TIMEOUT", "2500"),
                ("OTEL_BSP_SCHEDULE_DELAY", "100"),
                ("OTEL_BSP_MAX_QUEUE_SIZE", "10"),
            ],
        )
        .unwrap();
        assert_eq!(url(settings.traces.as_ref()).as_deref(), Some("https://c/base/v1/traces"));
        assert_eq!(url(settings.metrics.as_ref()).as_deref(), Some("http://m:1/metrics"));
        let headers = |endpoint: &TelemetryEndpoint| {
            let text = |value: &http::HeaderValue| value.to_str().unwrap().to_owned();
            endpoint
                .headers
                .iter()
                .map(|(name, value)| format!("{name}: {}", text(value)))
                .collect::<Vec<_>>()
        };
        let traces = headers(settings.traces.as_ref().unwrap());
        assert_eq!(traces, ["x-key: of-the-file", "authorization: Bearer a=b", "x-two: 2"]);
        assert!(headers(settings.metrics.as_ref().unwrap()).contains(&"x-two: 3".to_owned()));
        let resource: Vec<_> = settings.resource.attributes().collect();
        assert!(resource.contains(&("service.name", "hub")), "{resource:?}");
        assert!(resource.contains(&("deployment.environment.name", "test,b")), "{resource:?}");
        assert_eq!(
            settings.sampler,
            TraceSampler { follows_parent: true, root: RootSampling::ratio(0.25).unwrap() }
        );
        assert_eq!(
            (settings.timeout, settings.span_delay),
            (Duration::from_millis(2500), Duration::from_millis(100))
        );
        assert_eq!((settings.queue_spans, settings.batch_spans), (10, 10));
    }

    #[test]
    fn unusable_variables_are_named_without_their_value() {
        let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318");
        for (name, value) in [
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc-sentinel"),
            ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "sentinel"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "sentinel"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "a=sentinel%zz"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "a b=sentinel"),
            ("OTEL_RESOURCE_ATTRIBUTES", "=sentinel"),
            ("OTEL_TRACES_SAMPLER", "sentinel"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "sentinel"),
            ("OTEL_BSP_MAX_QUEUE_SIZE", "0"),
        ] {
            let error = applied(TelemetrySettings::default(), &[endpoint, (name, value)]).unwrap_err();
            assert_eq!(error.name, name);
            assert!(!error.to_string().contains("sentinel"), "{error}");
        }
        let ratio = [endpoint, ("OTEL_TRACES_SAMPLER", "traceidratio"), ("OTEL_TRACES_SAMPLER_ARG", "2")];
        assert_eq!(
            applied(TelemetrySettings::default(), &ratio).unwrap_err().name,
            "OTEL_TRACES_SAMPLER_ARG"
        );
    }
}
