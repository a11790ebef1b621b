//! `bare-pipe`: one thread that reads large chunks of lines and writes one batch of answers per chunk.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsFd;

/// What one read may bring; several times a pipe's own capacity.
const READ_SIZE: usize = 256 * 1024;

fn main() -> io::Result<()> {
    // The library's own buffers would cut reads to 8 KiB and flush at every line, so they are passed by.
    let mut input = unbuffered(io::stdin())?;
    let mut output = unbuffered(io::stdout())?;
    let mut pending: Vec<u8> = Vec::with_capacity(2 * READ_SIZE);
    let mut answers = Vec::with_capacity(2 * READ_SIZE);
    let mut chunk = vec![0; READ_SIZE];
    loop {
        let count = input.read(&mut chunk)?;
        let Some(fresh) = chunk.get(..count).filter(|fresh| !fresh.is_empty()) else { return Ok(()) };
        let Some(last_newline) = memchr::memrchr(b'\n', fresh) else {
            pending.extend_from_slice(fresh);
            continue;
        };
        let (complete, rest) = fresh.split_at(last_newline + 1);
        let mut lines = complete;
        if !pending.is_empty() {
            // Only the first line can have begun in an earlier chunk; the others are read where they lie.
            let end = memchr::memchr(b'\n', complete).map_or(complete.len(), |at| at + 1);
            let (first, others) = complete.split_at(end);
            pending.extend_from_slice(first);
            answer_lines(&pending, &mut answers)?;
            pending.clear();
            lines = others;
        }
        answer_lines(lines, &mut answers)?;
        pending.extend_from_slice(rest);
        output.write_all(&answers)?;
        answers.clear();
    }
}

fn answer_lines(lines: &[u8], answers: &mut Vec<u8>) -> io::Result<()> {
    let mut rest = lines;
    while let Some(end) = memchr::memchr(b'\n', rest) {
        let (line, after) = rest.split_at(end + 1);
        if bare::answer(line, answers)? != bare::Outcome::Silent {
            answers.push(b'\n');
        }
        rest = after;
    }
    Ok(())
}

fn unbuffered(stream: impl AsFd) -> io::Result<File> {
    stream.as_fd().try_clone_to_owned().map(File::from)
}
