use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use http::{HeaderName, HeaderValue};
use trunkline_http1::{Url, UrlScheme};
use trunkline_hub::events::TraceSampler;

/// The most headers of a request.
const MAX_HEADERS: usize = 32;

/// The most attributes of the resource.
const MAX_RESOURCE_ATTRIBUTES: usize = 64;

/// Where and how traces and metrics are exported.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TelemetrySettings {
    /// Where traces go; `None` for nowhere.
    pub traces: Option<TelemetryEndpoint>,
    /// Where metrics go; `None` for nowhere.
    pub metrics: Option<TelemetryEndpoint>,
    /// Which traces are exported. Default that of the caller, or else all.
    pub sampler: TraceSampler,
    /// A PEM file of certificate authorities to trust in addition to those of the system. Default none.
    pub certificate: Option<PathBuf>,
    /// The time for one request. Default 10 s.
    pub timeout: Duration,
    /// The most spans that wait for their export; further ones are dropped and counted. Default 2,048.
    pub queue_spans: usize,
    /// The most spans of a request. Default 512.
    pub batch_spans: usize,
    /// The time after which spans are exported, if there are fewer. Default 5 s.
    pub span_delay: Duration,
    /// The interval at which metrics are exported. Default 60 s.
    pub metric_interval: Duration,
    pub(crate) resource: TelemetryResource,
}

/// An address of a collector, with the headers that it wants. They may be secrets and are not shown.
#[derive(Clone)]
pub struct TelemetryEndpoint {
    pub(crate) url: Url,
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
}

/// What sends the telemetry: its name, version and host.
#[derive(Clone, Debug, Default)]
pub(crate) struct TelemetryResource(Vec<(String, String)>);

/// Why a setting cannot be used. A value is not in it, since it may be a secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TelemetryError {
    /// The address is no `http` or `https` URL.
    #[error("the address of the collector is not an http or https URL without user name")]
    Url,
    /// A header has no name, or a name or value that HTTP does not allow.
    #[error("header `{0}` cannot be sent")]
    Header(String),
    /// There are too many headers or resource attributes.
    #[error("too many {0}")]
    TooMany(&'static str),
}

impl Default for TelemetrySettings {
    fn default() -> Self {
        Self {
            traces: None,
            metrics: None,
            sampler: TraceSampler::default(),
            certificate: None,
            timeout: Duration::from_secs(10),
            queue_spans: 2048,
            batch_spans: 512,
            span_delay: Duration::from_secs(5),
            metric_interval: Duration::from_secs(60),
            resource: TelemetryResource::new([
                ("service.name".to_owned(), "trunkline".to_owned()),
                ("service.version".to_owned(), env!("CARGO_PKG_VERSION").to_owned()),
            ]),
        }
    }
}

impl TelemetrySettings {
    /// Sends traces and metrics to a collector, at the usual paths below an address.
    ///
    /// # Errors
    /// The address is no `http` or `https` URL.
    pub fn set_endpoint(&mut self, base: &str) -> Result<(), TelemetryError> {
        self.traces = Some(TelemetryEndpoint::below(base, "v1/traces")?);
        self.metrics = Some(TelemetryEndpoint::below(base, "v1/metrics")?);
        Ok(())
    }

    /// Sets an attribute of the resource, such as `service.name`.
    ///
    /// # Errors
    /// There are too many.
    pub fn set_resource(&mut self, key: &str, value: &str) -> Result<(), TelemetryError> {
        self.resource.set(key, value)
    }

    /// Adds a header to the requests of both.
    ///
    /// # Errors
    /// HTTP does not allow it, or there are too many.
    pub fn add_header(&mut self, name: &str, value: &str) -> Result<(), TelemetryError> {
        [&mut self.traces, &mut self.metrics]
            .into_iter()
            .flatten()
            .try_for_each(|endpoint| endpoint.add_header(name, value))
    }

    /// Reports whether anything is exported.
    pub fn is_enabled(&self) -> bool {
        self.traces.is_some() || self.metrics.is_some()
    }
}

impl TelemetryEndpoint {
    /// Makes an endpoint of a whole address.
    ///
    /// # Errors
    /// It is no `http` or `https` URL.
    pub fn at(url: &str) -> Result<Self, TelemetryError> {
        let url: Url = url.parse().map_err(|_| TelemetryError::Url)?;
        match url.scheme() {
            UrlScheme::Http | UrlScheme::Https => Ok(Self { url, headers: Vec::new() }),
            _ => Err(TelemetryError::Url),
        }
    }

    /// Makes the endpoint at a path below an address.
    fn below(base: &str, path: &str) -> Result<Self, TelemetryError> {
        Self::at(&format!("{}/{path}", base.trim_end_matches('/')))
    }

    /// Sets a header of the requests.
    ///
    /// # Errors
    /// HTTP does not allow it, or there are too many.
    pub fn add_header(&mut self, name: &str, value: &str) -> Result<(), TelemetryError> {
        let problem = |_| TelemetryError::Header(name.to_owned());
        let header = HeaderName::from_bytes(name.as_bytes()).map_err(|error| problem(error.into()))?;
        let mut value = HeaderValue::from_str(value).map_err(|error| problem(http::Error::from(error)))?;
        value.set_sensitive(true);
        self.headers.retain(|(known, _)| *known != header);
        if self.headers.len() >= MAX_HEADERS {
            return Err(TelemetryError::TooMany("headers"));
        }
        self.headers.push((header, value));
        Ok(())
    }
}

impl fmt::Debug for TelemetryEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("TelemetryEndpoint")
            .field("origin", &self.url.origin())
            .field("headers", &names)
            .finish()
    }
}

impl TelemetryResource {
    pub(crate) fn new(attributes: impl IntoIterator<Item = (String, String)>) -> Self {
        Self(attributes.into_iter().collect())
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), TelemetryError> {
        self.0.retain(|(known, _)| known != key);
        if self.0.len() >= MAX_RESOURCE_ATTRIBUTES {
            return Err(TelemetryError::TooMany("resource attributes"));
        }
        self.0.push((key.to_owned(), value.to_owned()));
        Ok(())
    }

    pub(crate) fn attributes(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_never_show_headers() {
        let mut settings = TelemetrySettings::default();
        settings.set_endpoint("https://collector.example/otlp/").unwrap();
        settings.add_header("Authorization", "Bearer sentinel").unwrap();
        let traces = settings.traces.clone().unwrap();
        assert_eq!(traces.url.path_and_query(), "/otlp/v1/traces");
        assert_eq!(settings.metrics.as_ref().unwrap().url.path_and_query(), "/otlp/v1/metrics");
        let shown = format!("{settings:?} {traces:?}");
        assert!(shown.contains("authorization") && !shown.contains("sentinel"), "{shown}");
        let refused = settings.add_header("x", "sentinel\n").unwrap_err().to_string();
        assert!(refused.contains("`x`") && !refused.contains("sentinel"), "{refused}");
        for url in ["", "collector:4318", "ws://a/", "https://user:sentinel@a/"] {
            let refused = TelemetryEndpoint::at(url).unwrap_err().to_string();
            assert!(!refused.contains("sentinel"), "{refused}");
        }
    }

    #[test]
    fn headers_and_attributes_are_bounded_and_replaced_by_name() {
        let mut endpoint = TelemetryEndpoint::at("http://127.0.0.1:4318/").unwrap();
        for number in 0..MAX_HEADERS {
            endpoint.add_header(&format!("h{number}"), "1").unwrap();
        }
        endpoint.add_header("H0", "2").unwrap();
        assert_eq!(endpoint.headers.len(), MAX_HEADERS);
        assert_eq!(endpoint.add_header("more", "1"), Err(TelemetryError::TooMany("headers")));
        let mut settings = TelemetrySettings::default();
        settings.set_resource("service.name", "mine").unwrap();
        assert!(settings.resource.attributes().any(|pair| pair == ("service.name", "mine")));
        assert_eq!(settings.resource.attributes().filter(|(key, _)| *key == "service.name").count(), 1);
    }
}
