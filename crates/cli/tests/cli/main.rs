//! The command as its users meet it: real processes, real pipes and real sockets.
#![cfg(unix)]

#[cfg(test)]
mod access_rules;
#[cfg(test)]
mod auth_table;
#[cfg(test)]
mod bare_client;
#[cfg(test)]
mod bridge;
#[cfg(all(test, target_os = "linux"))]
mod canary;
#[cfg(test)]
mod client;
#[cfg(test)]
mod client_dialects;
#[cfg(test)]
mod client_restore;
#[cfg(test)]
mod clients;
#[cfg(test)]
mod configuration;
#[cfg(test)]
mod container;
#[cfg(test)]
mod crashes;
#[cfg(test)]
mod described;
#[cfg(test)]
mod http;
#[cfg(test)]
#[cfg(target_os = "linux")]
mod hub;
#[cfg(test)]
mod login;
#[cfg(test)]
mod manage;
#[cfg(test)]
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod memory;
#[cfg(test)]
mod messages;
#[cfg(test)]
mod metrics;
#[cfg(test)]
mod process;
#[cfg(test)]
mod redis_cost;
#[cfg(test)]
mod redis_store;
#[cfg(test)]
mod request_tracing;
#[cfg(test)]
mod restarts;
#[cfg(test)]
mod secret_files;
#[cfg(test)]
mod session_store;
#[cfg(test)]
mod shutdown;
#[cfg(test)]
mod stdio;
