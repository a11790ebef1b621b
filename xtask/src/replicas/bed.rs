//! Redis, the replicas and the balancer of a run, and what is done to them.

use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::fixture::{self, FixtureServer, START_TIMEOUT};
use crate::run::{self, BackgroundProcess};
use crate::{TaskResult, root};

/// How many replicas there are, as in the configurations of the balancers.
pub(super) const REPLICAS: usize = 3;

/// How long a balancer may take to end.
const STOP_LIMIT: Duration = Duration::from_secs(5);

/// The addresses in the configurations of `docs/scaling`, for which a run has free ones.
const BALANCER_ADDRESS: &str = "127.0.0.1:7400";
const REPLICA_ADDRESSES: [&str; REPLICAS] = ["127.0.0.1:7411", "127.0.0.1:7412", "127.0.0.1:7413"];

/// What each replica runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReplicaKind {
    /// A server on the SDK.
    Server,
    /// The command in front of one such server, which all replicas share.
    Hub,
}

/// The program between the clients and the replicas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BalancerKind {
    Nginx,
    HaProxy,
}

impl BalancerKind {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Nginx => "nginx",
            Self::HaProxy => "haproxy",
        }
    }

    /// The configuration that the documentation has.
    const fn configuration(self) -> &'static str {
        match self {
            Self::Nginx => "docs/scaling/nginx.conf",
            Self::HaProxy => "docs/scaling/haproxy.cfg",
        }
    }

    fn command(self, path: &Path, folder: &Path) -> Command {
        match self {
            Self::Nginx => {
                let mut command = run::command("nginx");
                let settings = format!(
                    "daemon off; pid {}; error_log {} warn;",
                    folder.join("nginx.pid").display(),
                    folder.join("nginx.log").display()
                );
                command.arg("-c").arg(path).args(["-g", &settings]);
                command
            }
            Self::HaProxy => {
                let mut command = run::command("haproxy");
                command.args(["-db", "-q", "-f"]).arg(path);
                command
            }
        }
    }
}

/// The programs that replicas run.
#[derive(Clone, Debug)]
pub(super) struct ReplicaPrograms {
    pub(super) server: PathBuf,
    pub(super) hub: PathBuf,
}

/// Everything that runs, in a folder of its own.
pub(super) struct ReplicaBed {
    folder: PathBuf,
    programs: ReplicaPrograms,
    kind: ReplicaKind,
    redis: RedisServer,
    /// The server behind hubs.
    upstream: Option<FixtureServer>,
    replicas: Vec<BackgroundProcess>,
    addresses: [SocketAddr; REPLICAS],
    balancer: Option<FixtureServer>,
    address: SocketAddr,
}

impl ReplicaBed {
    pub(super) fn start(
        programs: &ReplicaPrograms,
        kind: ReplicaKind,
        balancer: BalancerKind,
        folder: &Path,
    ) -> TaskResult<Self> {
        fs::create_dir_all(folder)?;
        let folder = folder.canonicalize()?;
        write_key(&folder.join("state.key"))?;
        let redis = RedisServer::start(&folder.join("redis"))?;
        let upstream = match kind {
            ReplicaKind::Server => None,
            ReplicaKind::Hub => Some(FixtureServer::start(&programs.server)?),
        };
        let addresses = [fixture::free_address()?, fixture::free_address()?, fixture::free_address()?];
        let path = folder.join(balancer.name());
        let running = FixtureServer::start_by(|address| {
            // A failure to write it is that of the balancer to start.
            let _ = fs::write(&path, configuration(balancer, address, &addresses).unwrap_or_default());
            let mut command = balancer.command(&path, &folder);
            command.stdout(Stdio::null()).stderr(log(&folder, balancer.name()));
            command
        })?;
        let mut bed = Self {
            folder,
            programs: programs.clone(),
            kind,
            redis,
            upstream,
            replicas: Vec::new(),
            addresses,
            address: running.address(),
            balancer: Some(running),
        };
        for number in 0..REPLICAS {
            let started = bed.start_replica(number)?;
            bed.replicas.push(started);
        }
        bed.wait_until_ready()?;
        Ok(bed)
    }

    /// The address of the balancer.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    fn start_replica(&self, number: usize) -> TaskResult<BackgroundProcess> {
        let address = self.addresses.get(number).ok_or("there is no such replica")?.to_string();
        let key = self.folder.join("state.key");
        let url = format!("redis://127.0.0.1:{}", self.redis.port);
        let mut command = match (&self.kind, &self.upstream) {
            (ReplicaKind::Hub, Some(upstream)) => {
                let mut command = run::command(&self.programs.hub);
                command.args(["bridge", "--log-level", "warn", "--http", &address, "--store", &url]);
                command.arg("--state-key").arg(key).arg(upstream.url("http", "/mcp"));
                command
            }
            _ => {
                let mut command = run::command(&self.programs.server);
                command.args(["--http", &address, "--store", &url]).arg("--state-key").arg(key);
                command
            }
        };
        let name = format!("replica-{number}");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log(&self.folder, &name));
        BackgroundProcess::start(&mut command)
    }

    fn wait_until_ready(&mut self) -> TaskResult {
        for (replica, address) in self.replicas.iter_mut().zip(self.addresses) {
            let ready = replica.wait_until(START_TIMEOUT, || run::is_listening(address));
            ready.map_err(|error| {
                format!("a replica did not start: {error}; see {}", self.folder.display())
            })?;
        }
        Ok(())
    }

    /// Kills a replica without notice, and starts the next one at its address.
    pub(super) fn kill_replica(&mut self, number: usize) -> TaskResult {
        let number = number % REPLICAS;
        // Dropping the process kills it and waits for its end.
        drop(self.replicas.remove(number));
        let started = self.start_replica(number)?;
        self.replicas.insert(number, started);
        self.wait_until_ready()
    }

    /// Has a replica drain and end, as in a rolling restart, and starts the next one at its address.
    pub(super) fn replace_replica(&mut self, number: usize, limit: Duration) -> TaskResult {
        let number = number % REPLICAS;
        let mut leaving = self.replicas.remove(number);
        leaving.terminate(limit)?;
        let started = self.start_replica(number)?;
        self.replicas.insert(number, started);
        self.wait_until_ready()
    }

    pub(super) fn redis(&mut self) -> &mut RedisServer {
        &mut self.redis
    }
}

impl Drop for ReplicaBed {
    fn drop(&mut self) {
        // The workers of nginx outlive a master that is killed.
        let balancer = self.balancer.take();
        let _ = balancer.map(|balancer| balancer.stop(STOP_LIMIT));
    }
}

/// Fills the addresses of a run into a configuration of the documentation.
fn configuration(
    balancer: BalancerKind,
    address: SocketAddr,
    replicas: &[SocketAddr; REPLICAS],
) -> TaskResult<String> {
    let mut text = fs::read_to_string(root().join(balancer.configuration()))?;
    let pairs = REPLICA_ADDRESSES.iter().zip(replicas).chain([(&BALANCER_ADDRESS, &address)]);
    for (documented, actual) in pairs {
        if !text.contains(documented) {
            return Err(format!("{} has no {documented}", balancer.configuration()).into());
        }
        text = text.replace(documented, &actual.to_string());
    }
    Ok(text)
}

fn write_key(path: &Path) -> TaskResult {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;

    let mut file = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    // Not a secret: everything that it seals ends with the run.
    Ok(file.write_all(&[b'k'; 32])?)
}

/// Opens a log, which the next process of the same name continues.
fn log(folder: &Path, name: &str) -> Stdio {
    let file = File::options().create(true).append(true).open(folder.join(format!("{name}.log")));
    file.map_or_else(|_| Stdio::null(), Stdio::from)
}

/// A Redis that stores every change on disk before it acknowledges it.
pub(super) struct RedisServer {
    running: BackgroundProcess,
    folder: PathBuf,
    port: u16,
}

impl RedisServer {
    fn start(folder: &Path) -> TaskResult<Self> {
        fs::create_dir_all(folder)?;
        let port = fixture::free_address()?.port();
        let running = Self::spawn(folder, port)?;
        let mut server = Self { running, folder: folder.to_path_buf(), port };
        server.wait_until_ready()?;
        Ok(server)
    }

    fn spawn(folder: &Path, port: u16) -> TaskResult<BackgroundProcess> {
        let mut command = run::command("redis-server");
        command.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", ""]);
        command.args(["--appendonly", "yes", "--appendfsync", "always", "--maxmemory-policy", "noeviction"]);
        command.args(["--enable-debug-command", "local", "--dir"]).arg(folder);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log(folder, "redis"));
        BackgroundProcess::start(&mut command)
    }

    fn wait_until_ready(&mut self) -> TaskResult {
        let port = self.port.to_string();
        let is_ready = || {
            let ping = run::command("redis-cli").args(["-p", &port, "ping"]).stderr(Stdio::null()).output();
            ping.is_ok_and(|output| output.stdout.starts_with(b"PONG"))
        };
        self.running.wait_until(START_TIMEOUT, is_ready)
    }

    /// Stops the process for a time, so that it accepts connections and answers nothing.
    pub(super) fn stop_for(&self, pause: Duration) -> TaskResult {
        let id = self.running.id().to_string();
        run::run(run::command("kill").args(["-STOP", &id]))?;
        std::thread::sleep(pause);
        run::run(run::command("kill").args(["-CONT", &id]))
    }

    /// Has it answer nothing to clients for a time.
    pub(super) fn pause_for(&self, pause: Duration) -> TaskResult {
        self.send(&["client", "pause", &pause.as_millis().to_string(), "all"])?;
        std::thread::sleep(pause);
        Ok(())
    }

    /// Makes it slow for a time: it works on nothing but waiting, again and again.
    pub(super) fn slow_for(&self, time: Duration) -> TaskResult {
        let end = Instant::now() + time;
        while Instant::now() < end {
            self.send(&["debug", "sleep", "0.05"])?;
        }
        Ok(())
    }

    /// Kills it without notice and starts it on what it has stored.
    pub(super) fn restart(&mut self) -> TaskResult {
        run::run(run::command("kill").args(["-KILL", &self.running.id().to_string()]))?;
        while self.running.ended()?.is_none() {
            std::thread::sleep(Duration::from_millis(10));
        }
        self.running = Self::spawn(&self.folder, self.port)?;
        self.wait_until_ready()
    }

    fn send(&self, words: &[&str]) -> TaskResult {
        let port = self.port.to_string();
        run::output(run::command("redis-cli").args(["-p", &port]).args(words)).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn configurations_of_the_documentation_have_the_addresses_that_a_run_replaces() {
        let address = |port: u16| SocketAddr::from(([127, 0, 0, 1], port));
        for balancer in [BalancerKind::Nginx, BalancerKind::HaProxy] {
            let text = configuration(balancer, address(1), &[address(2), address(3), address(4)]).unwrap();
            for port in 1..=4 {
                assert!(text.contains(&format!("127.0.0.1:{port}")), "{}: {port}", balancer.name());
            }
            assert!(!text.contains(":74"), "{text}");
        }
    }
}
