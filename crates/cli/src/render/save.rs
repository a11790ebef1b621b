use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};

use super::media::{extension, file_stem, size_words};
use super::piece::Piece;
use crate::exit::{Exit, Failure};

/// How many files of one name a folder can have.
const MOST_ALIKE: usize = 10_000;

/// Where content is saved, byte for byte.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Out {
    /// Standard output.
    Stdout,
    /// One file, which is replaced.
    File(PathBuf),
    /// A folder, in which no file is replaced.
    Folder(PathBuf),
}

/// What is worth saving.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Saved {
    /// Pictures, sounds and blobs; if there are none, everything.
    MediaFirst,
    /// Everything.
    All,
}

impl Out {
    /// Reads what `--out` was given: `-`, a folder that is there or ends in a slash, or a file.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let path = Path::new(text);
        match text {
            "" => Err("write a file, a folder, or - for standard output".to_owned()),
            "-" => Ok(Self::Stdout),
            _ if text.ends_with('/') || path.is_dir() => Ok(Self::Folder(path.to_owned())),
            _ => Ok(Self::File(path.to_owned())),
        }
    }
}

/// Saves what is worth saving, and returns the pieces that are left to show and a line for each file that was written.
///
/// # Errors
/// Something is not what the server says it is, or cannot be written.
pub(crate) fn save(
    pieces: Vec<Piece>,
    out: &Out,
    which: Saved,
    stem: &str,
) -> Result<(Vec<Piece>, Vec<String>), Failure> {
    let is_media = |piece: &Piece| matches!(piece, Piece::Media { .. });
    let only_media = which == Saved::MediaFirst && pieces.iter().any(is_media);
    let mut rest = Vec::new();
    let mut found: Vec<(Piece, Vec<u8>)> = Vec::new();
    for piece in pieces {
        let bytes = if only_media && !is_media(&piece) { Ok(None) } else { piece.bytes() };
        match bytes.map_err(|problem| Failure::new(Exit::Failed, problem))? {
            Some(bytes) => found.push((piece, bytes)),
            // Headings belong to what is saved.
            None if matches!(piece, Piece::Heading(_)) && !only_media => {}
            None => rest.push(piece),
        }
    }
    if found.is_empty() {
        return Err(Failure::new(Exit::Failed, "there is nothing to save"));
    }
    let told = match out {
        Out::Folder(folder) => {
            found.iter().map(|(piece, bytes)| to_folder(folder, stem, piece, bytes)).collect()
        }
        Out::File(path) => {
            let bytes = one(found)?;
            let written = File::create(path).and_then(|mut file| file.write_all(&bytes));
            written.map_err(|error| cannot_save(path, &error)).map(|()| vec![told(path, &bytes)])
        }
        Out::Stdout => to_stdout(&one(found)?).map(|()| Vec::new()),
    };
    Ok((rest, told?))
}

/// Returns what goes into a single file: one piece, or texts one after the other.
fn one(found: Vec<(Piece, Vec<u8>)>) -> Result<Vec<u8>, Failure> {
    let count = found.len();
    if count > 1 && found.iter().any(|(piece, _)| matches!(piece, Piece::Media { .. })) {
        let failure = Failure::new(Exit::Usage, format!("there are {count} things to save, and one file"));
        return Err(failure.hint("give --out a folder: a name that ends in a slash"));
    }
    Ok(found.into_iter().map(|(_, bytes)| bytes).collect::<Vec<_>>().join(&b'\n'))
}

fn to_stdout(bytes: &[u8]) -> Result<(), Failure> {
    let mut stdout = io::stdout();
    if stdout.is_terminal() {
        let failure = Failure::new(Exit::Usage, "standard output is a terminal, which bytes could steer");
        return Err(failure.hint("give --out a file, or write to a pipe"));
    }
    let written = stdout.write_all(bytes).and_then(|()| stdout.flush());
    written.map_err(|error| Failure::new(Exit::Failed, format!("standard output cannot be written: {error}")))
}

fn to_folder(folder: &Path, stem: &str, piece: &Piece, bytes: &[u8]) -> Result<String, Failure> {
    std::fs::create_dir_all(folder).map_err(|error| cannot_save(folder, &error))?;
    let (name, extension) = file_name(stem, piece);
    for number in 1..=MOST_ALIKE {
        let number = if number == 1 { String::new() } else { format!("-{number}") };
        let path = folder.join(format!("{name}{number}{extension}"));
        // Neither a file nor a link that is there already is ever written through.
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Ok(mut file) => {
                file.write_all(bytes).map_err(|error| cannot_save(&path, &error))?;
                return Ok(told(&path, bytes));
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(cannot_save(&path, &error)),
        }
    }
    Err(cannot_save(folder, &"it has too many files of one name"))
}

/// Returns the stem and the extension, with its dot, of the file for a piece.
fn file_name(stem: &str, piece: &Piece) -> (String, String) {
    let (name, mime_type) = match piece {
        Piece::Text { name, mime_type, .. } => {
            (name.as_deref(), mime_type.as_deref().unwrap_or("text/plain"))
        }
        Piece::Media { name, mime_type, .. } => (name.as_deref(), mime_type.as_str()),
        Piece::Structured(_) | Piece::Link(_) | Piece::Heading(_) => (None, "application/json"),
    };
    let name = file_stem(name.unwrap_or(stem));
    match name.rsplit_once('.') {
        // A resource's own name knows best what it is.
        Some((before, own)) if !before.is_empty() && (1..=8).contains(&own.len()) => {
            (before.to_owned(), format!(".{own}"))
        }
        _ => (name, format!(".{}", extension(mime_type).unwrap_or("bin"))),
    }
}

fn told(path: &Path, bytes: &[u8]) -> String {
    format!("saved {} to {}", size_words(bytes.len()), path.display())
}

fn cannot_save(path: &Path, problem: &dyn std::fmt::Display) -> Failure {
    Failure::new(Exit::Configuration, format!("{} cannot be written: {problem}", path.display()))
        .hint("give --out a place that you may write to")
}

#[cfg(test)]
mod tests {
    use tempfile::tempdir;

    use super::*;

    fn text(text: &str) -> Piece {
        Piece::Text { text: text.to_owned(), mime_type: None, name: None }
    }

    fn image(data: &str, name: Option<&str>) -> Piece {
        Piece::Media {
            what: "image",
            mime_type: "image/png".to_owned(),
            data: data.to_owned(),
            name: name.map(str::to_owned),
        }
    }

    #[test]
    fn places_are_told_apart_by_how_they_are_written() {
        let there = tempdir().unwrap();
        assert_eq!(Out::parse("-"), Ok(Out::Stdout));
        assert_eq!(Out::parse("new/"), Ok(Out::Folder("new/".into())));
        assert_eq!(Out::parse(there.path().to_str().unwrap()), Ok(Out::Folder(there.path().to_owned())));
        assert_eq!(Out::parse("x.png"), Ok(Out::File("x.png".into())));
        assert!(Out::parse("").is_err());
    }

    #[test]
    fn a_folder_gets_every_medium_and_loses_nothing() {
        let folder = tempdir().unwrap();
        let folder = folder.path();
        std::fs::write(folder.join("draw.png"), "mine").unwrap();
        let pieces =
            vec![text("said"), image("AAEC", None), image("Aw==", Some("demo://a/../../etc/shot.jpeg"))];
        let out = Out::Folder(folder.join("."));
        let (rest, told) = save(pieces, &out, Saved::MediaFirst, "draw").unwrap();
        assert_eq!(rest, [text("said")]);
        assert_eq!(told.len(), 2);
        assert_eq!(std::fs::read(folder.join("draw.png")).unwrap(), b"mine");
        assert_eq!(std::fs::read(folder.join("draw-2.png")).unwrap(), [0, 1, 2]);
        assert_eq!(std::fs::read(folder.join("shot.jpeg")).unwrap(), [3]);
    }

    #[test]
    fn a_file_gets_one_medium_or_all_of_the_text() {
        let folder = tempdir().unwrap();
        let path = folder.path().join("out");
        let out = Out::File(path.clone());
        let (rest, _) = save(vec![text("a"), image("AAEC", None)], &out, Saved::MediaFirst, "x").unwrap();
        assert_eq!((rest.len(), std::fs::read(&path).unwrap()), (1, vec![0, 1, 2]));
        save(vec![text("a"), text("b")], &out, Saved::MediaFirst, "x").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"a\nb");
        let several = vec![text("a"), image("AAEC", None)];
        let failure = save(several, &out, Saved::All, "x").unwrap_err();
        assert!(failure.to_string().contains("2 things to save"), "{failure}");
    }

    #[test]
    fn what_is_no_base64_is_the_servers_mistake() {
        let folder = tempdir().unwrap();
        let out = Out::File(folder.path().join("out"));
        let failure = save(vec![image("!!", None)], &out, Saved::MediaFirst, "x").unwrap_err();
        assert_eq!(failure.exit(), Exit::Failed);
        assert!(failure.to_string().contains("image is not base64"), "{failure}");
    }
}
