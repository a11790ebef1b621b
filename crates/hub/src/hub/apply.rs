use std::sync::Arc;

use futures_util::future::join_all;
use trunkline_config::{ChangeEffect, ServerConfig, ServerName, StartMode, diff};

use super::Hub;
use crate::upstream::Upstream;

/// The outcome of applying a configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ApplyReport {
    /// Servers that are new.
    pub added: Vec<ServerName>,
    /// Servers that were removed, with their connections.
    pub removed: Vec<ServerName>,
    /// Servers with a changed configuration; they were restarted if the change affects the connection.
    pub updated: Vec<ServerName>,
    /// Servers with the same configuration, which keep their connections.
    pub unchanged: Vec<ServerName>,
    /// New and updated servers that could not be connected, each with the reason. They are retried.
    pub failed: Vec<(ServerName, String)>,
}

impl Hub {
    /// Applies a configuration: adds new servers, removes missing ones, replaces changed ones, and leaves unchanged
    /// ones alone.
    ///
    /// Eager servers are connected before this returns, and so is every server if a client has already sent a list
    /// request. A server that cannot be connected is reported and affects no other. New servers are registered before
    /// any is connected, so that a slow server does not block the next configuration: a server replaced meanwhile is
    /// reported as such.
    pub async fn set_servers(&self, configs: Vec<ServerConfig>) -> ApplyReport {
        let (mut applied, fresh, ended) = self.replace_servers(&configs);
        applied.failed = self.connect_new(&fresh).await;
        join_all(ended.iter().map(|server| server.wait_disconnected())).await;
        applied
    }

    /// Replaces the servers, and returns the report, the new servers and the removed ones.
    fn replace_servers(
        &self,
        configs: &[ServerConfig],
    ) -> (ApplyReport, Vec<Arc<Upstream>>, Vec<Arc<Upstream>>) {
        let inner = &self.inner;
        let _one_at_a_time = inner.apply_lock.lock();
        let servers = inner.servers();
        let before: Vec<ServerConfig> =
            servers.iter().map(|server| ServerConfig::clone(&server.config())).collect();
        let mut applied = ApplyReport::default();
        let mut next: Vec<(usize, Arc<Upstream>)> = Vec::with_capacity(configs.len());
        let (mut fresh, mut replaced) = (Vec::new(), Vec::new());
        let named = |name: &ServerName| servers.iter().find(|server| server.name() == name);
        let position =
            |config: &ServerConfig| configs.iter().position(|other| other.name == config.name).unwrap_or(0);
        let found = diff(&before, configs);
        for config in found.added {
            let server = self.make_upstream(config, None);
            applied.added.push(config.name.clone());
            fresh.push(server.clone());
            next.push((position(config), server));
        }
        for changed in found.changed {
            applied.updated.push(changed.after.name.clone());
            let Some(old) = named(&changed.after.name) else { continue };
            if changed.effect == ChangeEffect::KeepConnection {
                old.reconfigure(changed.after.clone());
                if inner.was_listed() {
                    old.request_lists();
                }
                next.push((position(changed.after), old.clone()));
            } else {
                let server = self.make_upstream(changed.after, Some(old));
                replaced.push(old.clone());
                fresh.push(server.clone());
                next.push((position(changed.after), server));
            }
        }
        for config in found.unchanged {
            applied.unchanged.push(config.name.clone());
            next.extend(named(&config.name).map(|server| (position(config), server.clone())));
        }
        let removed: Vec<_> =
            found.removed.iter().filter_map(|config| named(&config.name).cloned()).collect();
        applied.removed = removed.iter().map(|server| server.name().clone()).collect();
        next.sort_by_key(|(at, _)| *at);
        inner.set_servers(next.into_iter().map(|(_, server)| server).collect());
        inner.rebuild();
        let ended: Vec<_> = removed.into_iter().chain(replaced).collect();
        ended.iter().for_each(|server| server.remove());
        (applied, fresh, ended)
    }

    fn make_upstream(&self, config: &ServerConfig, before: Option<&Arc<Upstream>>) -> Arc<Upstream> {
        let inner = &self.inner;
        let stored = inner.listings_file.as_ref().filter(|_| before.is_none());
        let stored = stored.and_then(|file| file.server(&config.name, &config.location));
        let server = Upstream::new(
            config.clone(),
            inner.upstream_owner(config.name.clone(), None),
            before,
            stored.as_ref(),
        );
        if self.inner.was_listed() {
            server.request_lists();
        }
        server
    }

    /// Connects to the new servers that are needed now, and returns those that cannot be connected.
    async fn connect_new(&self, fresh: &[Arc<Upstream>]) -> Vec<(ServerName, String)> {
        if self.inner.is_draining() {
            return Vec::new();
        }
        let was_listed = self.inner.was_listed();
        let needed = fresh.iter().filter(|server| {
            let config = server.config();
            config.enabled && (was_listed || config.start == StartMode::Eager || server.is_list_requested())
        });
        let outcomes = needed.map(|server| async move {
            let outcome = server.connect_now().await;
            outcome.err().map(|reason| (server.name().clone(), reason))
        });
        join_all(outcomes).await.into_iter().flatten().collect()
    }
}
