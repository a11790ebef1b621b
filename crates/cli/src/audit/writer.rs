use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, channel, sync_channel};
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::json;

use super::audit_file::open_append;
use super::record::timestamp;
use crate::link_target::{LinkTarget, follow_links};
use crate::process_counter::ProcessCounter;
use crate::terminal::escape_line;

/// The lines that wait for a slow disk. Further ones are lost, and how many were is written.
const MAX_QUEUED_LINES: usize = 4096;

/// The timeout for flushing the queue at the end.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// A thread that writes lines, so that no call waits for a disk.
#[derive(Debug)]
pub(super) struct AuditWriter {
    /// Nothing once it is closed.
    commands: Mutex<Option<SyncSender<AuditWriterCommand>>>,
    dropped: Arc<AtomicU64>,
    is_healthy: Arc<AtomicBool>,
    ended: Mutex<Receiver<()>>,
}

enum AuditWriterCommand {
    Line(Vec<u8>),
    /// Only flushes.
    Probe,
    Reopen,
}

impl AuditWriter {
    /// # Errors
    /// The file cannot be opened, or the thread cannot be started.
    pub(super) fn spawn(path: &Path) -> io::Result<Self> {
        // Whatever folder is the current one later, the file stays the same.
        let path = std::path::absolute(path)?;
        let target = follow_links(&path);
        let file = open_append(&path)?;
        let (lines, orders) = sync_channel(MAX_QUEUED_LINES);
        let (end, ended) = channel();
        let lost = Arc::new(AtomicU64::new(0));
        let is_healthy = Arc::new(AtomicBool::new(true));
        let file = BufWriter::new(file);
        let (dropped, health) = (Arc::clone(&lost), Arc::clone(&is_healthy));
        let scribe = AuditWriterThread { path, target, file, dropped, is_healthy: health };
        std::thread::Builder::new().name("audit".to_owned()).spawn(move || {
            scribe.run(&orders);
            // The receiver may have been dropped.
            let _ = end.send(());
        })?;
        Ok(Self { commands: Mutex::new(Some(lines)), dropped: lost, is_healthy, ended: Mutex::new(ended) })
    }

    /// Writes a line some time soon; if too many wait already, it is lost and counted.
    pub(super) fn write(&self, line: Vec<u8>) {
        let lines = self.commands.lock().clone();
        let Some(lines) = lines else { return };
        if let Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) =
            lines.try_send(AuditWriterCommand::Line(line))
        {
            self.dropped.fetch_add(1, Ordering::Relaxed);
            ProcessCounter::LostAuditLines.add(1);
            self.is_healthy.store(false, Ordering::Release);
        }
    }

    /// Reports whether lines can be written. If not, a flush is tried, so that it is found out when they can be again.
    pub(super) fn is_healthy(&self) -> bool {
        let is_healthy = self.is_healthy.load(Ordering::Acquire);
        if !is_healthy && let Some(lines) = self.commands.lock().clone() {
            // A full queue is flushed anyway.
            let _ = lines.try_send(AuditWriterCommand::Probe);
        }
        is_healthy
    }

    pub(super) fn reopen(&self) {
        let lines = self.commands.lock().clone();
        if let Some(lines) = lines {
            // If the queue is full, the next signal reopens the file.
            let _ = lines.try_send(AuditWriterCommand::Reopen);
        }
    }

    pub(super) fn close(&self) {
        drop(self.commands.lock().take());
        let ended = self.ended.lock();
        if ended.recv_timeout(CLOSE_TIMEOUT) == Err(RecvTimeoutError::Timeout) {
            tracing::error!("the end of the audit log could not be written");
        }
    }
}

struct AuditWriterThread {
    path: PathBuf,
    /// Where the path led when the file was opened first: the file that was trusted.
    target: LinkTarget,
    file: BufWriter<File>,
    dropped: Arc<AtomicU64>,
    is_healthy: Arc<AtomicBool>,
}

impl AuditWriterThread {
    fn run(mut self, orders: &Receiver<AuditWriterCommand>) {
        while let Ok(order) = orders.recv() {
            self.execute(order);
            while let Ok(order) = orders.try_recv() {
                self.execute(order);
            }
            let flushed = self.file.flush();
            self.log_health_change(flushed);
        }
    }

    fn execute(&mut self, order: AuditWriterCommand) {
        match order {
            AuditWriterCommand::Line(line) => {
                let lost = self.dropped.swap(0, Ordering::Relaxed);
                if lost > 0 {
                    let record = json!({ "time": timestamp(), "lost": lost });
                    self.write(format!("{record}\n").as_bytes(), lost);
                }
                if !self.write(&line, 1) {
                    ProcessCounter::LostAuditLines.add(1);
                }
            }
            // The flush that follows every order finds out.
            AuditWriterCommand::Probe => {}
            AuditWriterCommand::Reopen => self.reopen(),
        }
    }

    /// Opens the file again. A path that leads elsewhere by now is not followed, since the user has not trusted that file.
    fn reopen(&mut self) {
        let target = follow_links(&self.path);
        if target.path != self.target.path {
            let (path, target) = (self.path.display().to_string(), target.path.display().to_string());
            tracing::error!(
                "the audit log {} leads to {} by now, which is not opened; lines go on to the file that is open, and a restart follows the link",
                escape_line(&path),
                escape_line(&target)
            );
            return;
        }
        match self.file.flush().and_then(|()| open_append(&self.path)) {
            Ok(file) => self.file = BufWriter::new(file),
            Err(error) => self.log_health_change(Err(error)),
        }
    }

    /// Writes to the buffer, and counts the calls of a text that does not fit any more; reports whether it fits. That it
    /// reaches the file is known only after a flush.
    fn write(&mut self, text: &[u8], calls: u64) -> bool {
        let Err(error) = self.file.write_all(text) else { return true };
        self.dropped.fetch_add(calls, Ordering::Relaxed);
        self.log_health_change(Err(error));
        false
    }

    /// Logs once that the file cannot be written, and once that it can again.
    fn log_health_change(&mut self, written: io::Result<()>) {
        let was_healthy = self.is_healthy.swap(written.is_ok(), Ordering::AcqRel);
        match written {
            Err(error) if was_healthy => {
                tracing::error!(%error, "cannot write to the audit log {}", self.path.display());
            }
            Ok(()) if !was_healthy => {
                tracing::warn!("the audit log {} can be written again", self.path.display());
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dropped_audit_lines_are_written_as_a_count() {
        let folder = std::env::temp_dir().join(format!("trunkline-audit-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("log");
        let lost = Arc::new(AtomicU64::new(3));
        let (lines, orders) = sync_channel(4);
        let file = BufWriter::new(open_append(&path).unwrap());
        let scribe = AuditWriterThread {
            path: path.clone(),
            target: follow_links(&path),
            file,
            dropped: lost,
            is_healthy: Arc::new(AtomicBool::new(true)),
        };
        lines.send(AuditWriterCommand::Line(b"first\n".to_vec())).unwrap();
        lines.send(AuditWriterCommand::Reopen).unwrap();
        lines.send(AuditWriterCommand::Line(b"second\n".to_vec())).unwrap();
        drop(lines);
        scribe.run(&orders);
        let written = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = written.lines().collect();
        assert_eq!((lines.len(), lines[1], lines[2]), (3, "first", "second"), "{written}");
        let record: serde_json::Value = serde_json::from_str(lines[0]).unwrap();
        assert_eq!(record["lost"], 3);
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn reopened_audit_log_is_not_written_elsewhere() {
        let folder = std::env::temp_dir().join(format!("trunkline-audit-link-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        let (path, moved, other) = (folder.join("log"), folder.join("log.1"), folder.join("other"));
        let writer = AuditWriter::spawn(&path).unwrap();
        writer.write(b"first\n".to_vec());
        std::fs::rename(&path, &moved).unwrap();
        std::os::unix::fs::symlink("other", &path).unwrap();
        writer.reopen();
        writer.write(b"second\n".to_vec());
        writer.close();
        assert!(!other.exists());
        assert_eq!(std::fs::read_to_string(&moved).unwrap(), "first\nsecond\n");
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn audit_lines_are_dropped_when_the_writer_queue_is_full() {
        let (lines, orders) = sync_channel(1);
        let (_end, ended) = channel();
        let writer = AuditWriter {
            commands: Mutex::new(Some(lines)),
            dropped: Arc::default(),
            is_healthy: Arc::new(AtomicBool::new(true)),
            ended: Mutex::new(ended),
        };
        let before = ProcessCounter::LostAuditLines.get();
        (0..5).for_each(|_| writer.write(Vec::new()));
        assert!(ProcessCounter::LostAuditLines.get() >= before + 4);
        assert_eq!(writer.dropped.load(Ordering::Relaxed), 4);
        drop(orders);
    }
}
