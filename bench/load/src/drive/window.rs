//! The stretch of time over which a server is measured.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde::Serialize;

use crate::machine::{cpu_time, cpu_time_of_children};

/// How long a measurement lasts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    /// Answers of this first stretch are checked and not counted.
    pub(crate) warm_up: Duration,
    pub(crate) measured: Duration,
}

/// What was measured.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Sample {
    pub(crate) requests: u64,
    pub(crate) seconds: f64,
    pub(crate) server_cpu_seconds: f64,
    /// That of what the server started, or of what it passes its calls on to.
    pub(crate) behind_cpu_seconds: f64,
    pub(crate) generator_cpu_seconds: f64,
}

impl Sample {
    pub(crate) fn cpu_microseconds(&self) -> f64 {
        self.server_cpu_seconds * 1e6 / self.requests as f64
    }

    pub(crate) fn requests_per_second(&self) -> f64 {
        self.requests as f64 / self.seconds
    }

    pub(crate) fn behind_cpu_microseconds(&self) -> f64 {
        self.behind_cpu_seconds * 1e6 / self.requests as f64
    }

    /// The share of its core that the generator used; near 1 the generator is the bottleneck.
    pub(crate) fn generator_busy(&self) -> f64 {
        self.generator_cpu_seconds / self.seconds
    }
}

/// Counts answers, notices when the measured stretch begins and ends, and ends a run that would not.
pub(crate) struct Window {
    server: u32,
    behind: Behind,
    plan: Plan,
    answered: u64,
    started: Instant,
    begin: Option<Mark>,
}

/// What a server passes its calls on to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Behind {
    /// Nothing.
    Nobody,
    /// Another process.
    Process(u32),
    /// The processes that it started.
    Children,
}

/// All that is read at the edges of the measured stretch.
struct Mark {
    at: Instant,
    answered: u64,
    server_cpu: Duration,
    behind_cpu: Duration,
    generator_cpu: Duration,
}

/// No run makes more requests than this, however fast the server: ids would not fit into their digits.
const MAX_REQUESTS: u64 = 20_000_000;

impl Window {
    pub(crate) fn new(server: u32, plan: Plan) -> Self {
        Self::in_front(server, Behind::Nobody, plan)
    }

    /// Measures a server that passes its calls on.
    pub(crate) fn in_front(server: u32, behind: Behind, plan: Plan) -> Self {
        Self { server, behind, plan, answered: 0, started: Instant::now(), begin: None }
    }

    /// Counts answers that were checked.
    pub(crate) fn count(&mut self, answers: u64) {
        self.answered += answers;
    }

    /// Looks at the clock, and gives the sample once the measured stretch is over.
    ///
    /// # Errors
    /// The server has ended, or nothing was answered in the measured stretch.
    pub(crate) fn poll(&mut self) -> Result<Option<Sample>> {
        let now = Instant::now();
        match &self.begin {
            None if now.duration_since(self.started) >= self.plan.warm_up => {
                self.begin = Some(self.mark()?);
                Ok(None)
            }
            None => Ok(None),
            Some(begin) => {
                let over = now.duration_since(begin.at) >= self.plan.measured;
                if over || self.answered >= MAX_REQUESTS { self.close(begin).map(Some) } else { Ok(None) }
            }
        }
    }

    fn close(&self, begin: &Mark) -> Result<Sample> {
        let end = self.mark()?;
        let requests = end.answered - begin.answered;
        ensure!(requests > 0, "no request was answered in {:?}", self.plan.measured);
        Ok(Sample {
            requests,
            seconds: end.at.duration_since(begin.at).as_secs_f64(),
            server_cpu_seconds: end.server_cpu.saturating_sub(begin.server_cpu).as_secs_f64(),
            behind_cpu_seconds: end.behind_cpu.saturating_sub(begin.behind_cpu).as_secs_f64(),
            generator_cpu_seconds: end.generator_cpu.saturating_sub(begin.generator_cpu).as_secs_f64(),
        })
    }

    fn mark(&self) -> Result<Mark> {
        Ok(Mark {
            server_cpu: cpu_time(self.server)?,
            behind_cpu: match self.behind {
                Behind::Nobody => Duration::ZERO,
                Behind::Process(process) => cpu_time(process)?,
                Behind::Children => cpu_time_of_children(self.server)?,
            },
            generator_cpu: cpu_time(std::process::id())?,
            at: Instant::now(),
            answered: self.answered,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_of_the_warm_up_are_not_counted() {
        let mut window =
            Window::new(std::process::id(), Plan { warm_up: Duration::ZERO, measured: Duration::ZERO });
        window.count(5);
        assert!(window.poll().unwrap().is_none(), "the first look ends the warm-up");
        window.count(3);
        assert_eq!(window.poll().unwrap().unwrap().requests, 3);
    }

    #[test]
    fn window_without_responses_is_an_error() {
        let mut window =
            Window::new(std::process::id(), Plan { warm_up: Duration::ZERO, measured: Duration::ZERO });
        assert!(window.poll().unwrap().is_none());
        window.poll().expect_err("nothing was answered");
    }
}
