//! Resident memory of a process.

use std::fs;

use anyhow::{Context as _, Result};

/// Reads `VmRSS`; kernel memory, such as socket buffers, is not part of it.
pub(crate) fn resident_bytes(pid: u32) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))
        .with_context(|| format!("the process {pid} has ended"))?;
    let kibibytes = vm_rss_kibibytes(&status).context("`/proc/PID/status` has no VmRSS")?;
    Ok(kibibytes * 1024)
}

fn vm_rss_kibibytes(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resident_memory_is_read_from_its_own_line() {
        assert_eq!(vm_rss_kibibytes("VmHWM:\t  99 kB\nVmRSS:\t    4312 kB\n"), Some(4312));
        assert_eq!(vm_rss_kibibytes("VmHWM:\t  99 kB\n"), None);
    }
}
