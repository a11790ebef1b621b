//! The stores under measurement, each in a folder of its own.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};
use clap::ValueEnum;

use crate::machine::cpu_time;
use crate::servers::{Binaries, HttpServer, Program, free_address};

/// A kind of store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum StoreKind {
    Memory,
    File,
    /// A `redis-server` of the system, which stores nothing on disk.
    Redis,
}

impl StoreKind {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::File => "file",
            Self::Redis => "Redis",
        }
    }
}

/// A store that is ready; its folder is removed with it.
pub(super) struct Store {
    kind: StoreKind,
    folder: PathBuf,
    redis: Option<HttpServer>,
}

impl Store {
    pub(super) fn start(binaries: &Binaries, kind: StoreKind) -> Result<Self> {
        let folder = std::env::temp_dir().join(format!("load-stores-{}-{}", std::process::id(), kind.name()));
        fs::DirBuilder::new().mode(0o700).create(&folder).context("make a folder for the store")?;
        let mut store = Self { kind, folder, redis: None };
        let mut key = [0; 32];
        fs::File::open("/dev/urandom")?.read_exact(&mut key)?;
        let mut options = fs::OpenOptions::new();
        options.write(true).create_new(true).mode(0o600).open(store.key())?.write_all(&key)?;
        if kind == StoreKind::Redis {
            let address = free_address()?;
            let words = ["--port", &address.port().to_string(), "--save", "", "--appendonly", "no", "--dir"];
            let mut arguments: Vec<_> = words.into_iter().map(Into::into).collect();
            arguments.push(store.folder.clone().into());
            let program = Program { name: "redis-server", path: "redis-server".into(), arguments };
            store.redis = Some(HttpServer::start_program(binaries, &program, address)?);
        }
        Ok(store)
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    fn key(&self) -> PathBuf {
        self.folder.join("state.key")
    }

    fn file(&self) -> PathBuf {
        self.folder.join("sessions.redb")
    }

    /// The options by which a server uses the store.
    pub(super) fn options(&self) -> Vec<String> {
        let location = match (self.kind, &self.redis) {
            (StoreKind::File, _) => format!("file:{}", self.file().display()),
            (StoreKind::Redis, Some(redis)) => format!("redis://{}", redis.address()),
            _ => "memory".to_owned(),
        };
        vec!["--store".to_owned(), location, "--state-key".to_owned(), self.key().display().to_string()]
    }

    /// How many bytes are stored outside of the server.
    pub(super) fn bytes(&self) -> Result<u64> {
        match (self.kind, &self.redis) {
            (StoreKind::File, _) => Ok(fs::metadata(self.file())?.len()),
            (_, Some(redis)) => used_memory(redis.address()),
            _ => Ok(0),
        }
    }

    /// The CPU time of the database, where it is a process of its own.
    pub(super) fn cpu_time(&self) -> Result<Duration> {
        self.redis.as_ref().map_or(Ok(Duration::ZERO), |redis| cpu_time(redis.id()))
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.redis = None;
        // What is left is in the folder for temporary files.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn used_memory(address: SocketAddr) -> Result<u64> {
    let mut socket = TcpStream::connect(address).context("connect to Redis")?;
    socket.write_all(b"INFO memory\r\nQUIT\r\n")?;
    let mut text = String::new();
    socket.read_to_string(&mut text)?;
    read_used_memory(&text).context("Redis reports no `used_memory`")
}

fn read_used_memory(info: &str) -> Option<u64> {
    info.lines().find_map(|line| line.strip_prefix("used_memory:"))?.trim_end().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_of_redis_is_read_from_its_own_line() {
        let info =
            "$30\r\n# Memory\r\nused_memory_rss:9\r\nused_memory:1234\r\nused_memory_peak:7\r\n\r\n+OK\r\n";
        assert_eq!(read_used_memory(info), Some(1234));
        assert_eq!(read_used_memory("used_memory_rss:9\r\n"), None);
    }
}
