use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderValue;
use trunkline_http1::{Url, UrlScheme};

use super::no_proxy::NoProxyList;
use crate::secret::Secret;

/// The proxy settings.
///
/// The default reads the environment: `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY`, in upper or lower
/// case. A loopback address then never uses a proxy.
#[derive(Clone, Debug)]
pub struct ProxySettings {
    plain: ProxyChoice,
    encrypted: ProxyChoice,
    no_proxy: NoProxyList,
    loopback: LoopbackPolicy,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LoopbackPolicy {
    Direct,
    Proxied,
}

/// The meaning of a setting.
#[derive(Clone, Debug)]
enum ProxyChoice {
    Direct,
    Use(HttpProxy),
    /// The setting is invalid; a connection that would need it fails with this error.
    Unusable(ProxyError),
}

/// An HTTP proxy.
#[derive(Clone)]
pub(crate) struct HttpProxy {
    pub(crate) host: String,
    pub(crate) port: u16,
    /// The environment variable that names it.
    variable: Option<String>,
    /// The value of `Proxy-Authorization`.
    pub(crate) credentials: Option<Secret>,
}

/// The reason why a proxy cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProxyError {
    /// The setting is not a valid URL.
    #[error("the setting of the proxy is not an address such as http://proxy.example:3128")]
    Address,
    /// An environment variable has an invalid setting.
    #[error("environment variable `{variable}`: {source}")]
    Variable {
        /// The variable.
        variable: String,
        /// What is wrong with its value.
        source: Box<ProxyError>,
    },
    /// The scheme of the proxy is not `http`.
    #[error("a proxy that is reached by `{0}` is not supported, only one by `http`")]
    Scheme(String),
    /// The proxy requires credentials, or rejected them.
    #[error("the proxy `{0}` wants credentials; they stand in its address, as http://user:password@proxy")]
    Unauthorized(String),
    /// The proxy rejected the tunnel.
    #[error("the proxy `{proxy}` refused a tunnel with status {status}")]
    Refused {
        /// The proxy.
        proxy: String,
        /// The status of its response.
        status: u16,
    },
    /// The response of the proxy is no HTTP, or is missing.
    #[error("the proxy `{0}` did not answer as a proxy does")]
    Malformed(String),
}

impl ProxySettings {
    /// Connects to every server directly.
    pub fn none() -> Self {
        Self {
            plain: ProxyChoice::Direct,
            encrypted: ProxyChoice::Direct,
            no_proxy: NoProxyList::default(),
            loopback: LoopbackPolicy::Direct,
        }
    }

    /// Connects to every server through one proxy, including loopback addresses.
    ///
    /// # Errors
    /// The address is not that of a supported proxy.
    pub fn all(address: &str) -> Result<Self, ProxyError> {
        let proxy = HttpProxy::read(address)?;
        Ok(Self {
            plain: ProxyChoice::Use(proxy.clone()),
            encrypted: ProxyChoice::Use(proxy),
            no_proxy: NoProxyList::default(),
            loopback: LoopbackPolicy::Proxied,
        })
    }

    /// Reads the settings from the environment.
    pub fn from_environment() -> Self {
        Self::from_variables(|name| std::env::var(name).ok())
    }

    fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Self {
        let either = |name: &str| {
            let set = |name: &str| {
                let value = variable(name).filter(|value| !value.trim().is_empty())?;
                Some((name.to_owned(), value))
            };
            set(&name.to_ascii_lowercase()).or_else(|| {
                // A CGI server passes the request header `Proxy` to its programs as `HTTP_PROXY`, so that there a
                // remote client controls the variable ("httpoxy").
                let foreign = name == "HTTP_PROXY" && variable("REQUEST_METHOD").is_some();
                if foreign { None } else { set(name) }
            })
        };
        let choice = |name: &str| match either(name).or_else(|| either("ALL_PROXY")) {
            None => ProxyChoice::Direct,
            Some((variable, address)) => match HttpProxy::read(&address) {
                Ok(proxy) => ProxyChoice::Use(HttpProxy { variable: Some(variable), ..proxy }),
                Err(error) => {
                    ProxyChoice::Unusable(ProxyError::Variable { variable, source: Box::new(error) })
                }
            },
        };
        Self {
            plain: choice("HTTP_PROXY"),
            encrypted: choice("HTTPS_PROXY"),
            no_proxy: NoProxyList::read(&either("NO_PROXY").map(|(_, value)| value).unwrap_or_default()),
            loopback: LoopbackPolicy::Direct,
        }
    }

    /// Returns the proxy for a server; `None` for a direct connection.
    pub(crate) fn choose(&self, url: &Url) -> Result<Option<&HttpProxy>, ProxyError> {
        let choice = if url.scheme().is_encrypted() { &self.encrypted } else { &self.plain };
        if (self.loopback == LoopbackPolicy::Direct && url.is_loopback())
            || self.no_proxy.contains(url.host(), url.port())
        {
            return Ok(None);
        }
        match choice {
            ProxyChoice::Direct => Ok(None),
            ProxyChoice::Use(proxy) => Ok(Some(proxy)),
            ProxyChoice::Unusable(error) => Err(error.clone()),
        }
    }
}

impl Default for ProxySettings {
    fn default() -> Self {
        Self::from_environment()
    }
}

impl HttpProxy {
    fn read(text: &str) -> Result<Self, ProxyError> {
        let text = text.trim();
        let (scheme, rest) = text.split_once("://").unwrap_or(("http", text));
        if !scheme.eq_ignore_ascii_case("http") {
            return Err(ProxyError::Scheme(scheme.to_ascii_lowercase()));
        }
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let (credentials, authority) =
            authority.rsplit_once('@').map_or((None, authority), |(user, host)| (Some(user), host));
        let url: Url =
            format!("{}://{authority}", UrlScheme::Http.as_str()).parse().map_err(|_| ProxyError::Address)?;
        let credentials = credentials.map(basic).transpose()?;
        Ok(Self { host: url.host().to_owned(), port: url.port(), variable: None, credentials })
    }

    /// Returns the host and port, for messages.
    pub(crate) fn name(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    /// Returns its name, with the environment variable that it is from.
    pub(crate) fn label(&self) -> String {
        match &self.variable {
            Some(variable) => format!("`{}` (from `{variable}`)", self.name()),
            None => format!("`{}`", self.name()),
        }
    }

    pub(crate) fn authorization(&self) -> Option<HeaderValue> {
        let mut value = HeaderValue::from_str(self.credentials.as_ref()?.expose()).ok()?;
        value.set_sensitive(true);
        Some(value)
    }
}

/// Creates `Basic` credentials (RFC 7617) from the user information of a URL.
fn basic(user: &str) -> Result<Secret, ProxyError> {
    let (name, password) = user.split_once(':').unwrap_or((user, ""));
    let mut plain = decode_percent(name)?;
    plain.push(b':');
    plain.extend(decode_percent(password)?);
    Ok(Secret::new(format!("Basic {}", STANDARD.encode(plain))))
}

fn decode_percent(text: &str) -> Result<Vec<u8>, ProxyError> {
    let mut bytes = text.bytes();
    let mut decoded = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            decoded.push(byte);
            continue;
        }
        let mut digit = || bytes.next().and_then(|digit| char::from(digit).to_digit(16));
        let (Some(high), Some(low)) = (digit(), digit()) else { return Err(ProxyError::Address) };
        decoded.push(u8::try_from(high * 16 + low).map_err(|_| ProxyError::Address)?);
    }
    Ok(decoded)
}

impl fmt::Debug for HttpProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Proxy({})", self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type ProxyVariables<'a> = &'a [(&'a str, &'a str)];

    fn chosen(variables: ProxyVariables<'_>, url: &str) -> Result<Option<String>, ProxyError> {
        let proxies = ProxySettings::from_variables(|name| {
            variables.iter().find(|(own, _)| *own == name).map(|(_, value)| (*value).to_owned())
        });
        proxies.choose(&url.parse().unwrap()).map(|proxy| proxy.map(HttpProxy::name))
    }

    #[test]
    fn proxy_is_chosen_from_environment_variables() {
        let http = ("HTTP_PROXY", "http://p:1");
        let https = ("https_proxy", "p:2");
        let all = ("ALL_PROXY", "http://p:3/");
        let table: &[(ProxyVariables<'_>, &str, Option<&str>)] = &[
            (&[], "http://h/", None),
            (&[http], "http://h/", Some("p:1")),
            (&[http], "ws://h/", Some("p:1")),
            (&[http], "https://h/", None),
            (&[https], "https://h/", Some("p:2")),
            (&[https], "wss://h/", Some("p:2")),
            (&[all], "http://h/", Some("p:3")),
            (&[all, https], "https://h/", Some("p:2")),
            (&[http, ("http_proxy", "p:9")], "http://h/", Some("p:9")),
            (&[("HTTP_PROXY", "")], "http://h/", None),
            (&[http, ("NO_PROXY", "other,h")], "http://h/", None),
            (&[http, ("NO_PROXY", "other")], "http://h/", Some("p:1")),
            (&[http], "http://localhost:80/", None),
            (&[http], "http://127.0.0.2/", None),
            (&[http], "http://[::1]/", None),
            (&[("HTTP_PROXY", "p:8")], "http://h/", Some("p:8")),
            (&[("HTTP_PROXY", "http://[fd00::1]:3128")], "http://h/", Some("fd00::1:3128")),
            // In a CGI program, a remote client may have set the variable.
            (&[http, ("REQUEST_METHOD", "GET")], "http://h/", None),
            (&[("http_proxy", "p:1"), ("REQUEST_METHOD", "GET")], "http://h/", Some("p:1")),
        ];
        for (variables, url, expected) in table {
            assert_eq!(chosen(variables, url), Ok(expected.map(str::to_owned)), "{variables:?} {url}");
        }
    }

    #[test]
    fn invalid_proxy_setting_fails_only_connections_that_use_it() {
        let table = [
            ("socks5://p:1", ProxyError::Scheme("socks5".to_owned())),
            ("https://p:1", ProxyError::Scheme("https".to_owned())),
            ("http://", ProxyError::Address),
            ("http://u%zz@p", ProxyError::Address),
        ];
        for (setting, source) in table {
            let expected = ProxyError::Variable { variable: "HTTP_PROXY".into(), source: Box::new(source) };
            assert_eq!(chosen(&[("HTTP_PROXY", setting)], "http://h/"), Err(expected), "{setting}");
            assert_eq!(chosen(&[("HTTP_PROXY", setting)], "http://127.0.0.1/"), Ok(None), "{setting}");
            assert_eq!(chosen(&[("HTTP_PROXY", setting)], "https://h/"), Ok(None), "{setting}");
        }
    }

    #[test]
    fn proxy_label_has_its_variable_and_no_credentials() {
        let proxies =
            ProxySettings::from_variables(|name| (name == "http_proxy").then(|| "http://u:word@p:1".into()));
        let proxy = proxies.choose(&"http://h/".parse().unwrap()).unwrap().unwrap().label();
        assert_eq!(proxy, "`p:1` (from `http_proxy`)");
    }

    #[test]
    fn proxy_credentials_are_basic_and_redacted_in_debug() {
        let proxies = ProxySettings::all("http://us%65r:pa%3Ass@p:1").unwrap();
        let url: Url = "http://127.0.0.1/".parse().unwrap();
        let proxy = proxies.choose(&url).unwrap().unwrap();
        // `user:pa:ss`.
        assert_eq!(proxy.authorization().unwrap(), "Basic dXNlcjpwYTpzcw==");
        assert!(!format!("{proxies:?} {:?}", proxy.authorization()).contains("dXNl"));
    }
}
