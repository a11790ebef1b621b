use std::path::{Path, PathBuf};

use trunkline_config::{ConfigFile, ConfigProblem, ConfigSection, ConfigVariables};
use trunkline_hub::SignInClient;
use trunkline_server::http::BearerTokens;
use trunkline_server::http::resource_server::{
    AlgorithmSet, DpopMode, IntrospectionCredentials, ResourceServerOptions, SignatureAlgorithm, TokenRules,
    TokenTyping, TrustedIssuer,
};
use trunkline_server::transport::Secret;
use trunkline_server::transport::dial::{DialOptions, Dialer};

use super::table::{AuthTable, DpopSetting, IssuerTable, SecretMethod, TypSetting};
use crate::commands::serve::plan_trust::TrustMode;
use crate::config_failure::config_failure;
use crate::exit::CliFailure;
use crate::trust;

/// The table `[auth]` of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::commands::serve) struct AuthSettings {
    /// The file with the table.
    pub(super) file: PathBuf,
    pub(super) table: AuthTable,
    /// Whether a change of the table has to be trusted.
    trust_mode: TrustMode,
}

impl AuthSettings {
    /// Decodes and checks the table.
    ///
    /// # Errors
    /// The first mistake, with its position.
    pub(in crate::commands::serve) fn from_section(section: &ConfigSection) -> Result<Self, ConfigProblem> {
        let table: AuthTable = section.read()?;
        for (at, issuer) in table.issuers.iter().enumerate() {
            algorithms(issuer)
                .map_err(|what| section.problem(&["issuers", &at.to_string(), "algorithms"], what))?;
            if issuer.connect_client_secret.is_some() && issuer.connect_client_id.is_none() {
                let what = "`connect_client_secret` needs `connect_client_id`";
                return Err(section.problem(&["issuers", &at.to_string(), "connect_client_secret"], what));
            }
            if issuer.jwks.is_some() && issuer.introspection.is_some() {
                let what = "an issuer has either `jwks` or `introspection`";
                return Err(section.problem(&["issuers", &at.to_string(), "jwks"], what));
            }
        }
        if table.issuers.is_empty() && table.tokens.is_none() {
            return Err(section.problem(&[], "[auth] needs `[[auth.issuers]]` or `tokens`"));
        }
        Ok(Self { file: section.file().to_owned(), table, trust_mode: TrustMode::Ask })
    }

    /// Sets whether a change of the table has to be trusted.
    pub(in crate::commands::serve) fn with_trust(self, trust_mode: TrustMode) -> Self {
        Self { trust_mode, ..self }
    }

    /// Reads the table of the file again.
    ///
    /// # Errors
    /// As [`AuthSettings::read`].
    pub(super) fn read_again(&self) -> Result<Self, CliFailure> {
        Self::read(&self.file, self.trust_mode)
    }

    /// Returns the file that changes when the table is trusted, if it has to be.
    pub(super) fn trust_record(&self) -> Option<PathBuf> {
        if self.trust_mode == TrustMode::Granted { None } else { trust::record_of(&self.file) }
    }

    /// Reads the table of a file.
    ///
    /// # Errors
    /// The file cannot be read, has no such table, it has a mistake, or it is not trusted.
    pub(in crate::commands::serve) fn read(path: &Path, trust_mode: TrustMode) -> Result<Self, CliFailure> {
        let file = ConfigFile::open(path, ConfigVariables::from_environment())
            .map_err(|error| config_failure(error.problems()))?;
        let section = file.section("auth").ok_or_else(|| {
            CliFailure::configuration(format!("{} has no table [auth]", path.display()))
                .hint("see docs/authorization.md for an example")
        })?;
        let settings = Self::from_section(&section).map_err(|problem| config_failure(&[problem]))?;
        if trust_mode == TrustMode::Ask {
            trust::check_setting(&file, "[auth]")?;
        }
        Ok(settings.with_trust(trust_mode))
    }

    /// Reports whether clients need access tokens of an issuer.
    pub(in crate::commands::serve) fn has_issuers(&self) -> bool {
        !self.table.issuers.is_empty()
    }

    /// Returns a path of the table, which counts from the folder of its file.
    pub(super) fn resolve(&self, path: &Path) -> PathBuf {
        self.file.parent().map_or_else(|| path.to_owned(), |folder| folder.join(path))
    }

    /// Returns the options of the resource server at a public URL.
    ///
    /// # Errors
    /// An algorithm is not known.
    pub(super) fn options(
        &self,
        resource: &str,
        endpoint_path: &str,
        tokens: Option<BearerTokens>,
    ) -> Result<ResourceServerOptions, String> {
        let table = &self.table;
        let mut options = ResourceServerOptions::new(resource);
        options.endpoint_path = Some(endpoint_path.to_owned());
        options.static_tokens = tokens;
        options.required_scopes.clone_from(&table.required_scopes);
        options.optional_scopes.clone_from(&table.optional_scopes);
        options.implied_scopes.clone_from(&table.implied_scopes);
        let name = table.resource_name.as_ref().map(|name| ("resource_name".to_owned(), name.clone().into()));
        options.metadata.extend(name);
        options.dpop = options.dpop.with_mode(match table.dpop {
            DpopSetting::Off => DpopMode::Off,
            DpopSetting::Accepted => DpopMode::Accepted,
            DpopSetting::Required => DpopMode::Required,
        });
        options.dpop.requires_nonce = table.dpop_nonce;
        options.dialer = self.dialer();
        options.issuers =
            table.issuers.iter().map(|issuer| trusted(issuer, resource)).collect::<Result<_, _>>()?;
        Ok(options)
    }
}

impl AuthSettings {
    /// Returns the clients with which users of the issuers sign in to open connect pages.
    pub(super) fn sign_ins(&self, resource: &str) -> Vec<SignInClient> {
        let sign_in = |issuer: &IssuerTable| {
            Some(SignInClient {
                issuer: issuer.issuer.clone(),
                client_id: issuer.connect_client_id.clone()?,
                client_secret: issuer.connect_client_secret.as_ref().map(|text| Secret::new(text.expose())),
                resource: resource.to_owned(),
                scopes: self.table.required_scopes.iter().map(String::as_str).collect(),
                dialer: self.dialer(),
            })
        };
        self.table.issuers.iter().filter_map(sign_in).collect()
    }

    /// Returns how issuers are connected to.
    fn dialer(&self) -> Dialer {
        let mut dial = DialOptions::default();
        dial.extra_roots = self.table.ca.as_deref().map(|path| self.resolve(path));
        Dialer::new(dial)
    }
}

fn trusted(table: &IssuerTable, resource: &str) -> Result<TrustedIssuer, String> {
    let audiences =
        if table.audience.is_empty() { vec![resource.to_owned()] } else { table.audience.clone() };
    let mut rules = TokenRules::new(&table.issuer, audiences);
    rules.algorithms = algorithms(table)?;
    rules.typing = match table.typ {
        TypSetting::AtJwt => TokenTyping::AtJwt,
        TypSetting::Any => TokenTyping::AllowUntyped,
    };
    let (issuer, place) = match &table.introspection {
        None => (TrustedIssuer::jwt(rules), &table.jwks),
        Some(introspection) => {
            let client_id = introspection.client_id.clone();
            let client_secret = Secret::new(introspection.client_secret.expose());
            let credentials = match introspection.method {
                SecretMethod::Basic => IntrospectionCredentials::Basic { client_id, client_secret },
                SecretMethod::Post => IntrospectionCredentials::Post { client_id, client_secret },
            };
            (TrustedIssuer::introspection(rules, credentials), &introspection.endpoint)
        }
    };
    Ok(match place {
        Some(place) => issuer.at(place),
        None => issuer,
    })
}

fn algorithms(table: &IssuerTable) -> Result<AlgorithmSet, String> {
    if table.algorithms.is_empty() {
        return Ok(AlgorithmSet::all());
    }
    let parse = |name: &String| {
        SignatureAlgorithm::parse(name).ok_or_else(|| {
            let known = SignatureAlgorithm::ALL.map(SignatureAlgorithm::as_str).join(", ");
            format!("`{name}` is not an accepted signature algorithm; use {known}")
        })
    };
    table.algorithms.iter().map(parse).collect()
}
