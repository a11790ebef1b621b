//! Trusted issuers over HTTP.

#[cfg(test)]
mod error_sources;
#[cfg(test)]
mod exchange;
#[cfg(test)]
mod fetches;
#[cfg(test)]
#[allow(clippy::needless_pass_by_value, reason = "claims are written where they are used")]
mod issuer_server;
#[cfg(test)]
mod workload;
