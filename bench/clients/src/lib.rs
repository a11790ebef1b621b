//! What both clients share: the calls that they make, and how their cost is read.

use std::future::Future;
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::Parser;
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use rustix::time::{ClockId, clock_gettime};

/// Calls the tool `echo` of a server and prints what a call cost this process.
#[derive(Debug, Parser)]
pub struct Options {
    /// What the tool is called there.
    #[arg(long, default_value = "echo")]
    pub tool: String,
    /// The address of the server's endpoint.
    #[arg(long, conflicts_with = "stdio", required_unless_present = "stdio")]
    pub http: Option<String>,
    /// The command line of the server; this program starts it.
    #[arg(long, num_args = 1.., allow_hyphen_values = true)]
    pub stdio: Option<Vec<String>>,
    /// The revision to use, where the client can be configured.
    #[arg(long, default_value = "2025-11-25")]
    pub revision: String,
    /// How many calls are under way at once.
    #[arg(long, default_value_t = 32)]
    pub in_flight: usize,
    /// How many calls are measured; a tenth as many go before.
    #[arg(long, default_value_t = 20_000)]
    pub calls: usize,
    /// Have so many clients make their calls one after the other, and print how long a call takes in place of its cost.
    #[arg(long)]
    pub clients: Option<usize>,
}

/// The text that is sent and has to come back.
pub const TEXT: &str = "0123456789abcdef";

/// Makes the calls and prints the CPU time of one, in nanoseconds.
///
/// # Errors
/// A call fails.
pub async fn measure<F, C>(options: &Options, call: C) -> Result<()>
where
    C: Fn() -> F,
    F: Future<Output = Result<()>>,
{
    make(options.calls / 10, options.in_flight, &call).await?;
    let before = cpu_time();
    make(options.calls, options.in_flight, &call).await?;
    let spent = cpu_time().saturating_sub(before);
    println!("{}", spent.as_nanos() / options.calls.max(1) as u128);
    Ok(())
}

/// Has every client make its share of the calls, one after the other, and prints in nanoseconds how long half of them and how
/// long 99 of 100 took at most, and then how many were made in a second.
///
/// # Errors
/// A call fails.
pub async fn time<F, C>(options: &Options, clients: Vec<C>) -> Result<()>
where
    C: Fn() -> F,
    F: Future<Output = Result<()>>,
{
    let each = options.calls.div_ceil(clients.len().max(1));
    for (calls, is_measured) in [(each.div_ceil(10), false), (each, true)] {
        let began = Instant::now();
        let times = futures_util::future::try_join_all(clients.iter().map(|call| timed(calls, call))).await?;
        let within = began.elapsed();
        let mut times: Vec<Duration> = times.into_iter().flatten().collect();
        times.sort_unstable();
        let at = |part: usize| times.get(times.len() * part / 100).map_or(0, Duration::as_nanos);
        if is_measured {
            println!("{} {} {:.0}", at(50), at(99), times.len() as f64 / within.as_secs_f64());
        }
    }
    Ok(())
}

async fn timed<F, C>(calls: usize, call: &C) -> Result<Vec<Duration>>
where
    C: Fn() -> F,
    F: Future<Output = Result<()>>,
{
    let mut times = Vec::with_capacity(calls);
    for _ in 0..calls {
        let began = Instant::now();
        call().await?;
        times.push(began.elapsed());
    }
    Ok(times)
}

async fn make<F, C>(calls: usize, in_flight: usize, call: &C) -> Result<()>
where
    C: Fn() -> F,
    F: Future<Output = Result<()>>,
{
    stream::iter(0..calls)
        .map(|_| call())
        .buffer_unordered(in_flight)
        .try_for_each(|()| async { Ok(()) })
        .await
}

/// Reads how long this process was on a core, all its threads together; those of a server that it started do not count.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.try_into().unwrap_or(0), time.tv_nsec.try_into().unwrap_or(0))
}
