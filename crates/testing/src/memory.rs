//! Memory of processes, as Linux reports it.

use std::{fs, io};

/// Returns how many bytes of a process's memory are resident (`VmRSS`).
///
/// # Errors
/// The process has ended, or the system reports no memory of it.
pub fn resident_bytes(process: u32) -> io::Result<usize> {
    read(process, "VmRSS:")
}

/// Returns how many bytes of a process's memory were resident at most (`VmHWM`).
///
/// # Errors
/// As [`resident_bytes`].
pub fn peak_bytes(process: u32) -> io::Result<usize> {
    read(process, "VmHWM:")
}

fn read(process: u32, figure: &str) -> io::Result<usize> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    parse(&status, figure).ok_or_else(|| io::Error::other(format!("process {process} reports no memory")))
}

fn parse(status: &str, figure: &str) -> Option<usize> {
    let line = status.lines().find_map(|line| line.strip_prefix(figure))?;
    let kibibytes: usize = line.split_whitespace().next()?.parse().ok()?;
    Some(kibibytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_read_in_bytes_each_by_its_own_name() {
        let status = "VmHWM:\t  99 kB\nVmRSS:\t    43 kB\n";
        assert_eq!(parse(status, "VmRSS:"), Some(43 * 1024));
        assert_eq!(parse(status, "VmHWM:"), Some(99 * 1024));
        assert_eq!(parse("Name:\tx\nState:\tZ (zombie)\n", "VmRSS:"), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn own_memory_grows_with_what_is_written() {
        let own = std::process::id();
        let before = resident_bytes(own).unwrap();
        let block = std::hint::black_box(vec![1_u8; 32 << 20]);
        let after = resident_bytes(own).unwrap();
        assert!(after >= before + (24 << 20) && peak_bytes(own).unwrap() >= after, "{before} {after}");
        drop(block);
        assert!(resident_bytes(u32::MAX).is_err());
    }
}
