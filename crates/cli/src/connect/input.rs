use std::fs::File;
use std::io::{self, Read};

/// The most that one argument may hold, so that a wrong file is not read to its end.
const MAX_INPUT_BYTES: u64 = 64 << 20;

/// Reads a file that was named as an argument; `-` is standard input.
///
/// # Errors
/// It cannot be read, is too large, or is not text.
pub(crate) fn read_input(name: &str) -> io::Result<String> {
    if name == "-" { read_text(io::stdin().lock()) } else { read_text(File::open(name)?) }
}

fn read_text(reader: impl Read) -> io::Result<String> {
    let mut text = String::new();
    let length = reader.take(MAX_INPUT_BYTES + 1).read_to_string(&mut text)?;
    if u64::try_from(length).is_ok_and(|length| length > MAX_INPUT_BYTES) {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("it is larger than {} MiB", MAX_INPUT_BYTES >> 20),
        ));
    }
    Ok(text)
}
