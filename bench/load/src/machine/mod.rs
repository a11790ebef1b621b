//! The machine under the servers: its cores, its accounting of time and memory, its limits.

mod cores;
mod cpu;
mod descriptors;
mod facts;
mod resident;

pub(crate) use cores::{on_server_core, pin_generator};
pub(crate) use cpu::{cpu_time, cpu_time_of_children};
pub(crate) use descriptors::ensure_descriptors;
pub(crate) use facts::{Facts, facts};
pub(crate) use resident::resident_bytes;
