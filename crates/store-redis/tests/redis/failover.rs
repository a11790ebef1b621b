//! Sentinel and cluster: the contracts, and a primary that dies.

use std::time::{Duration, Instant};

use trunkline_session::{SessionStore as _, StateKeys, contract};
use trunkline_store_redis::{RedisStore, RedisStoreLimits};

use crate::fixture::{NOW, StoreMaker, ann, open, record};
use crate::server::{RedisProcess, free_port};

/// How long replicas and sentinels may take to find each other, and to agree on another primary.
const SETTLE_DEADLINE: Duration = Duration::from_secs(120);

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < SETTLE_DEADLINE, "{what} does not happen");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Reports whether a replica has all that its primary has written. `WAIT` counts only the writes of its own connection.
fn is_replicated(primary: &RedisProcess) -> bool {
    let info = primary.command(&["INFO", "replication"]);
    let sent = info.lines().find_map(|line| line.strip_prefix("master_repl_offset:"));
    sent.is_some_and(|sent| info.contains(&format!("offset={sent},")))
}

/// A primary, a replica and three sentinels.
struct SentinelServers {
    primary: RedisProcess,
    replica: RedisProcess,
    sentinels: Vec<RedisProcess>,
}

impl SentinelServers {
    fn start() -> Self {
        let primary = RedisProcess::start();
        let port = primary.port.to_string();
        let replica = RedisProcess::start_with(&["--save", "", "--replicaof", "127.0.0.1", &port]);
        let sentinels: Vec<_> = (0..3)
            .map(|_| {
                let port = free_port();
                let file = std::env::temp_dir().join(format!("trunkline-sentinel-{}-{port}.conf", std::process::id()));
                let settings = format!(
                    "port {port}\nsentinel monitor main 127.0.0.1 {} 2\nsentinel down-after-milliseconds main 1000\n\
                     sentinel failover-timeout main 5000\n",
                    primary.port
                );
                std::fs::write(&file, settings).unwrap();
                let words = [file.to_str().unwrap(), "--sentinel"].map(str::to_owned).to_vec();
                RedisProcess::start_on(port, |_| words.clone())
            })
            .collect();
        for sentinel in &sentinels {
            wait_until("discovery", || {
                let state = sentinel.command(&["SENTINEL", "MASTER", "main"]);
                let value = |name: &str| {
                    let mut lines = state.lines();
                    lines.find(|line| *line == name)?;
                    lines.nth(1).map(str::to_owned)
                };
                value("num-other-sentinels").as_deref() == Some("2")
                    && value("num-slaves").as_deref() == Some("1")
            });
        }
        Self { primary, replica, sentinels }
    }

    fn url(&self) -> String {
        let hosts: Vec<_> = self.sentinels.iter().map(|one| format!("127.0.0.1:{}", one.port)).collect();
        format!("redis+sentinel://{}/main", hosts.join(","))
    }
}

impl Drop for SentinelServers {
    fn drop(&mut self) {
        for sentinel in &self.sentinels {
            let name = format!("trunkline-sentinel-{}-{}.conf", std::process::id(), sentinel.port);
            let _ = std::fs::remove_file(std::env::temp_dir().join(name));
        }
    }
}

/// Waits until a store answers again after a failover.
async fn wait_until_healed(store: &RedisStore) {
    let start = Instant::now();
    while let Err(error) = store.sessions().create(record(&ann(), NOW), NOW).await {
        assert!(start.elapsed() < SETTLE_DEADLINE, "{error}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[test]
fn redis_stores_pass_the_contract_suites_through_sentinel() {
    let servers = SentinelServers::start();
    let maker = StoreMaker::new(servers.url());
    contract::sessions(|sessions| maker.make(RedisStoreLimits { sessions, ..Default::default() }).sessions());
    contract::events(|events| maker.make(RedisStoreLimits { events, ..Default::default() }).events());
    contract::states(|states| maker.make(RedisStoreLimits { states, ..Default::default() }).states());
    contract::claims(|events| maker.make(RedisStoreLimits { events, ..Default::default() }).events());
    contract::bus(|limits| maker.make_buses(&limits));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn store_follows_sentinel_to_another_primary() {
    let mut servers = SentinelServers::start();
    let store = open(&servers.url(), &StateKeys::random().unwrap(), RedisStoreLimits::default()).await;
    let own = record(&ann(), NOW);
    store.sessions().create(own.clone(), NOW).await.unwrap();
    wait_until("replication", || is_replicated(&servers.primary));
    servers.primary.kill();
    wait_until_healed(&store).await;
    assert_eq!(store.sessions().get(own.id, &ann(), NOW).await, Ok(Some(own)));
}

/// A failover may lose this, and nothing else: the promise of docs/scaling.md.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failover_loses_exactly_what_the_replica_did_not_have() {
    let mut servers = SentinelServers::start();
    let store = open(&servers.url(), &StateKeys::random().unwrap(), RedisStoreLimits::default()).await;
    let [replicated, lost] = [(); 2].map(|()| [(); 20].map(|()| record(&ann(), NOW)));
    for own in &replicated {
        store.sessions().create(own.clone(), NOW).await.unwrap();
    }
    wait_until("replication", || is_replicated(&servers.primary));
    // More than the sockets between the two take fills them, so that nothing behind it reaches the replica.
    servers.replica.pause();
    servers.primary.command(&["EVAL", "redis.call('SET', 'filler', string.rep('x', 67108864))", "0"]);
    for own in &lost {
        store.sessions().create(own.clone(), NOW).await.unwrap();
    }
    servers.primary.kill();
    servers.replica.resume();
    wait_until_healed(&store).await;
    for (own, is_there) in replicated.iter().map(|own| (own, true)).chain(lost.iter().map(|own| (own, false)))
    {
        let found = store.sessions().get(own.id, &ann(), NOW).await.unwrap();
        assert_eq!(found, is_there.then(|| own.clone()));
    }
}

/// Three primaries with a replica each.
struct ClusterServers(Vec<RedisProcess>);

impl ClusterServers {
    fn start() -> Self {
        let start = || {
            // The port of the bus is chosen too: by default it is 10,000 above.
            let bus = free_port().to_string();
            RedisProcess::start_with(&[
                "--save",
                "",
                "--cluster-enabled",
                "yes",
                "--cluster-node-timeout",
                "2000",
                "--cluster-port",
                &bus,
            ])
        };
        let nodes: Vec<_> = (0..6).map(|_| start()).collect();
        let servers = Self(nodes);
        servers.create();
        servers
    }

    #[expect(clippy::disallowed_methods, reason = "the command ends by itself")]
    fn create(&self) {
        let created = std::process::Command::new("redis-cli")
            .args(["--cluster", "create"])
            .args(self.0.iter().map(|node| format!("127.0.0.1:{}", node.port)))
            .args(["--cluster-replicas", "1", "--cluster-yes"])
            .output()
            .unwrap();
        assert!(created.status.success(), "{}", String::from_utf8_lossy(&created.stdout));
        for node in &self.0 {
            wait_until("the cluster", || {
                let info = node.command(&["CLUSTER", "INFO"]);
                let nodes = node.command(&["CLUSTER", "NODES"]);
                info.contains("cluster_state:ok")
                    && nodes.matches(" slave ").count() + nodes.matches("myself,slave ").count() == 3
            });
        }
    }

    fn url(&self) -> String {
        let hosts: Vec<_> = self.0.iter().map(|node| format!("127.0.0.1:{}", node.port)).collect();
        format!("redis+cluster://{}", hosts.join(","))
    }
}

#[test]
fn redis_stores_pass_the_contract_suites_in_a_cluster() {
    let servers = ClusterServers::start();
    let maker = StoreMaker::new(servers.url());
    contract::sessions(|sessions| maker.make(RedisStoreLimits { sessions, ..Default::default() }).sessions());
    contract::events(|events| maker.make(RedisStoreLimits { events, ..Default::default() }).events());
    contract::states(|states| maker.make(RedisStoreLimits { states, ..Default::default() }).states());
    contract::claims(|events| maker.make(RedisStoreLimits { events, ..Default::default() }).events());
    contract::bus(|limits| maker.make_buses(&limits));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn store_survives_the_death_of_a_cluster_node() {
    let mut servers = ClusterServers::start();
    let store = open(&servers.url(), &StateKeys::random().unwrap(), RedisStoreLimits::default()).await;
    let records: Vec<_> = (0..30).map(|_| record(&ann(), NOW)).collect();
    for own in &records {
        store.sessions().create(own.clone(), NOW).await.unwrap();
    }
    // The first three are the primaries.
    wait_until("replication", || servers.0[..3].iter().all(is_replicated));
    servers.0[0].kill();
    wait_until_healed(&store).await;
    for own in &records {
        let start = Instant::now();
        let found = loop {
            match store.sessions().get(own.id, &ann(), NOW).await {
                Ok(found) => break found,
                Err(error) => assert!(start.elapsed() < SETTLE_DEADLINE, "{error}"),
            }
        };
        assert_eq!(found.as_ref(), Some(own));
    }
}
