//! What both clients share: the calls that they make, and how their cost is read.

use std::future::Future;
use std::time::Duration;

use anyhow::Result;
use clap::Parser;
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use rustix::time::{ClockId, clock_gettime};

/// Calls the tool `echo` of a server and prints what a call cost this process.
#[derive(Debug, Parser)]
pub struct Options {
    /// The address of the server's endpoint.
    #[arg(long, conflicts_with = "stdio", required_unless_present = "stdio")]
    pub http: Option<String>,
    /// The command line of the server; this program starts it.
    #[arg(long, num_args = 1.., allow_hyphen_values = true)]
    pub stdio: Option<Vec<String>>,
    /// The revision to speak, where the client lets one choose.
    #[arg(long, default_value = "2025-11-25")]
    pub revision: String,
    /// How many calls are under way at once.
    #[arg(long, default_value_t = 32)]
    pub in_flight: usize,
    /// How many calls are measured; a tenth as many go before.
    #[arg(long, default_value_t = 20_000)]
    pub calls: usize,
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
