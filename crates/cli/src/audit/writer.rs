use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, channel, sync_channel};
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::json;

use super::record::now;

/// The lines that wait for a slow disk. Further ones are lost, and how many were is written.
const MOST_WAITING: usize = 4096;

/// How long is waited at the end for what is left.
const LEAVE_WITHIN: Duration = Duration::from_secs(5);

/// A thread that writes lines, so that no call waits for a disk.
#[derive(Debug)]
pub(super) struct Writer {
    /// Nothing once it is closed.
    lines: Mutex<Option<SyncSender<Order>>>,
    lost: Arc<AtomicU64>,
    ended: Mutex<Receiver<()>>,
}

enum Order {
    Line(Vec<u8>),
    Reopen,
}

impl Writer {
    /// # Errors
    /// The file cannot be opened, or there is no thread to be had.
    pub(super) fn begin(path: &Path) -> io::Result<Self> {
        // Whatever folder is the current one later, the file stays the same.
        let path = std::path::absolute(path)?;
        let file = open(&path)?;
        let (lines, orders) = sync_channel(MOST_WAITING);
        let (end, ended) = channel();
        let lost = Arc::new(AtomicU64::new(0));
        let scribe = Scribe { path, file: BufWriter::new(file), lost: lost.clone(), is_well: true };
        std::thread::Builder::new().name("audit".to_owned()).spawn(move || {
            scribe.write_all(&orders);
            // Nobody may be there any more to hear of it.
            let _ = end.send(());
        })?;
        Ok(Self { lines: Mutex::new(Some(lines)), lost, ended: Mutex::new(ended) })
    }

    /// Writes a line some time soon; if too many wait already, it is lost and counted.
    pub(super) fn write(&self, line: Vec<u8>) {
        let lines = self.lines.lock().clone();
        let Some(lines) = lines else { return };
        if let Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) = lines.try_send(Order::Line(line))
        {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn reopen(&self) {
        let lines = self.lines.lock().clone();
        if let Some(lines) = lines {
            // One that is too busy to reopen now is asked again by the next signal.
            let _ = lines.try_send(Order::Reopen);
        }
    }

    pub(super) fn close(&self) {
        drop(self.lines.lock().take());
        let ended = self.ended.lock();
        if ended.recv_timeout(LEAVE_WITHIN) == Err(RecvTimeoutError::Timeout) {
            tracing::error!("the audit log could not be written to its end");
        }
    }
}

struct Scribe {
    path: PathBuf,
    file: BufWriter<File>,
    lost: Arc<AtomicU64>,
    is_well: bool,
}

impl Scribe {
    fn write_all(mut self, orders: &Receiver<Order>) {
        while let Ok(order) = orders.recv() {
            self.follow(order);
            while let Ok(order) = orders.try_recv() {
                self.follow(order);
            }
            let flushed = self.file.flush();
            self.note(flushed);
        }
    }

    fn follow(&mut self, order: Order) {
        match order {
            Order::Line(line) => {
                let lost = self.lost.swap(0, Ordering::Relaxed);
                if lost > 0 {
                    let told = json!({ "time": now(), "lost": lost });
                    let written = writeln!(self.file, "{told}");
                    self.note(written);
                }
                let written = self.file.write_all(&line);
                if written.is_err() {
                    self.lost.fetch_add(1, Ordering::Relaxed);
                }
                self.note(written);
            }
            Order::Reopen => match self.file.flush().and_then(|()| open(&self.path)) {
                Ok(file) => self.file = BufWriter::new(file),
                failed => self.note(failed.map(drop)),
            },
        }
    }

    /// Tells once that the file cannot be written, and once that it can again.
    fn note(&mut self, written: io::Result<()>) {
        match written {
            Err(error) if self.is_well => {
                tracing::error!(%error, "the audit log {} cannot be written", self.path.display());
                self.is_well = false;
            }
            Ok(()) if !self.is_well => {
                tracing::warn!("the audit log {} is written again", self.path.display());
                self.is_well = true;
            }
            _ => {}
        }
    }
}

fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_counted_and_told() {
        let folder = std::env::temp_dir().join(format!("trunkline-audit-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("log");
        let lost = Arc::new(AtomicU64::new(3));
        let (lines, orders) = sync_channel(4);
        let file = BufWriter::new(open(&path).unwrap());
        let scribe = Scribe { path: path.clone(), file, lost, is_well: true };
        lines.send(Order::Line(b"first\n".to_vec())).unwrap();
        lines.send(Order::Reopen).unwrap();
        lines.send(Order::Line(b"second\n".to_vec())).unwrap();
        drop(lines);
        scribe.write_all(&orders);
        let written = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = written.lines().collect();
        assert_eq!((lines.len(), lines[1], lines[2]), (3, "first", "second"), "{written}");
        let told: serde_json::Value = serde_json::from_str(lines[0]).unwrap();
        assert_eq!(told["lost"], 3);
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_line_that_nobody_takes_away_is_lost_and_not_waited_for() {
        let (lines, orders) = sync_channel(1);
        let (_end, ended) = channel();
        let writer =
            Writer { lines: Mutex::new(Some(lines)), lost: Arc::default(), ended: Mutex::new(ended) };
        (0..5).for_each(|_| writer.write(Vec::new()));
        assert_eq!(writer.lost.load(Ordering::Relaxed), 4);
        drop(orders);
    }
}
