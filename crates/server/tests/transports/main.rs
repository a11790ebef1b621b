//! The same behaviour over every transport, and what is particular to those that share a port with the endpoint.
#![allow(clippy::needless_pass_by_value, reason = "messages are made where they are said")]

#[cfg(test)]
mod caller;
#[cfg(test)]
mod channel_eviction;
#[cfg(test)]
mod child;
#[cfg(test)]
mod cookies;
#[cfg(test)]
mod credential_end;
#[cfg(test)]
mod features;
#[cfg(test)]
mod http_client;
#[cfg(test)]
mod listed_sessions;
#[cfg(test)]
mod oauth_refusals;
#[cfg(test)]
mod protected_resource;
#[cfg(test)]
#[allow(clippy::needless_pass_by_value, reason = "claims are written where they are used")]
mod resource_server;
#[cfg(test)]
mod scopes;
#[cfg(test)]
mod seen_caller;
#[cfg(test)]
#[allow(clippy::needless_pass_by_value, reason = "values are written where they are used")]
mod service;
#[cfg(test)]
mod sse_pair;
#[cfg(test)]
mod suite;
#[cfg(test)]
mod tls;
#[cfg(test)]
mod transport_link;
#[cfg(test)]
mod unauthorized;
#[cfg(test)]
mod unused_channels;
#[cfg(test)]
mod websocket;
