use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};

use super::content::ContentPiece;
use super::media::{extension, file_stem, format_size};
use crate::exit::{CliFailure, ExitReason};

/// How many files of one name a folder can have.
const MAX_NAME_ATTEMPTS: usize = 10_000;

/// Where content is saved, byte for byte.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SaveTarget {
    /// Standard output.
    Stdout,
    /// One file, which is replaced.
    File(PathBuf),
    /// A folder, in which no file is replaced.
    Folder(PathBuf),
}

/// What is worth saving.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SaveSelection {
    /// Pictures, sounds and blobs; if there are none, everything.
    MediaFirst,
    /// Everything.
    All,
}

impl SaveTarget {
    /// Parses `--out`: `-`, a folder that exists or ends in a slash, or a file.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let path = Path::new(text);
        match text {
            "" => Err("expected a file, a folder, or - for stdout".to_owned()),
            "-" => Ok(Self::Stdout),
            _ if text.ends_with('/') || path.is_dir() => Ok(Self::Folder(path.to_owned())),
            _ => Ok(Self::File(path.to_owned())),
        }
    }
}

/// Saves what is worth saving, and returns the pieces that are left to show and a line for each file that was written.
///
/// # Errors
/// Content is not of its declared type, or cannot be written.
pub(crate) fn save(
    pieces: Vec<ContentPiece>,
    out: &SaveTarget,
    which: SaveSelection,
    stem: &str,
) -> Result<(Vec<ContentPiece>, Vec<String>), CliFailure> {
    let is_media = |piece: &ContentPiece| matches!(piece, ContentPiece::Media { .. });
    let only_media = which == SaveSelection::MediaFirst && pieces.iter().any(is_media);
    let mut rest = Vec::new();
    let mut found: Vec<(ContentPiece, Vec<u8>)> = Vec::new();
    for piece in pieces {
        let bytes = if only_media && !is_media(&piece) { Ok(None) } else { piece.bytes() };
        match bytes.map_err(|problem| CliFailure::new(ExitReason::Failed, problem))? {
            Some(bytes) => found.push((piece, bytes)),
            // Headings belong to what is saved.
            None if matches!(piece, ContentPiece::Heading(_)) && !only_media => {}
            None => rest.push(piece),
        }
    }
    if found.is_empty() {
        return Err(CliFailure::new(ExitReason::Failed, "nothing to save"));
    }
    let messages = match out {
        SaveTarget::Folder(folder) => {
            found.iter().map(|(piece, bytes)| to_folder(folder, stem, piece, bytes)).collect()
        }
        SaveTarget::File(path) => {
            let bytes = single_file_bytes(found)?;
            let written = File::create(path).and_then(|mut file| file.write_all(&bytes));
            written.map_err(|error| cannot_save(path, &error)).map(|()| vec![saved_message(path, &bytes)])
        }
        SaveTarget::Stdout => to_stdout(&single_file_bytes(found)?).map(|()| Vec::new()),
    };
    Ok((rest, messages?))
}

/// Returns the content of a single file: one piece, or concatenated texts.
fn single_file_bytes(found: Vec<(ContentPiece, Vec<u8>)>) -> Result<Vec<u8>, CliFailure> {
    let count = found.len();
    if count > 1 && found.iter().any(|(piece, _)| matches!(piece, ContentPiece::Media { .. })) {
        let failure = CliFailure::new(ExitReason::Usage, format!("{count} items to save, but only one file"));
        return Err(failure.hint("use a folder for --out: a name that ends in a slash"));
    }
    Ok(found.into_iter().map(|(_, bytes)| bytes).collect::<Vec<_>>().join(&b'\n'))
}

fn to_stdout(bytes: &[u8]) -> Result<(), CliFailure> {
    let mut stdout = io::stdout();
    if stdout.is_terminal() {
        let failure = CliFailure::new(ExitReason::Usage, "refusing to write binary data to a terminal");
        return Err(failure.hint("use a file for --out, or redirect stdout"));
    }
    let written = stdout.write_all(bytes).and_then(|()| stdout.flush());
    written.map_err(|error| CliFailure::new(ExitReason::Failed, format!("cannot write to stdout: {error}")))
}

fn to_folder(folder: &Path, stem: &str, piece: &ContentPiece, bytes: &[u8]) -> Result<String, CliFailure> {
    std::fs::create_dir_all(folder).map_err(|error| cannot_save(folder, &error))?;
    let (name, extension) = file_name(stem, piece);
    for number in 1..=MAX_NAME_ATTEMPTS {
        let number = if number == 1 { String::new() } else { format!("-{number}") };
        let path = folder.join(format!("{name}{number}{extension}"));
        // An existing file or symlink is never overwritten or followed.
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Ok(mut file) => {
                file.write_all(bytes).map_err(|error| cannot_save(&path, &error))?;
                return Ok(saved_message(&path, bytes));
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(cannot_save(&path, &error)),
        }
    }
    Err(cannot_save(folder, &"it has too many files with this name"))
}

/// Returns the stem and the extension, with its dot, of the file for a piece.
fn file_name(stem: &str, piece: &ContentPiece) -> (String, String) {
    let (name, mime_type) = match piece {
        ContentPiece::Text { name, mime_type, .. } => {
            (name.as_deref(), mime_type.as_deref().unwrap_or("text/plain"))
        }
        ContentPiece::Media { name, mime_type, .. } => (name.as_deref(), mime_type.as_str()),
        ContentPiece::Structured(_) | ContentPiece::Link(_) | ContentPiece::Heading(_) => {
            (None, "application/json")
        }
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

fn saved_message(path: &Path, bytes: &[u8]) -> String {
    format!("saved {} to {}", format_size(bytes.len()), path.display())
}

fn cannot_save(path: &Path, problem: &dyn std::fmt::Display) -> CliFailure {
    CliFailure::new(ExitReason::Configuration, format!("cannot write {}: {problem}", path.display()))
        .hint("use a path for --out that you can write to")
}

#[cfg(test)]
mod tests {
    use tempfile::tempdir;

    use super::*;

    fn text(text: &str) -> ContentPiece {
        ContentPiece::Text { text: text.to_owned(), mime_type: None, name: None }
    }

    fn image(data: &str, name: Option<&str>) -> ContentPiece {
        ContentPiece::Media {
            what: "image",
            mime_type: "image/png".to_owned(),
            data: data.to_owned(),
            name: name.map(str::to_owned),
        }
    }

    #[test]
    fn save_targets_are_parsed_by_their_form() {
        let there = tempdir().unwrap();
        assert_eq!(SaveTarget::parse("-"), Ok(SaveTarget::Stdout));
        assert_eq!(SaveTarget::parse("new/"), Ok(SaveTarget::Folder("new/".into())));
        assert_eq!(
            SaveTarget::parse(there.path().to_str().unwrap()),
            Ok(SaveTarget::Folder(there.path().to_owned()))
        );
        assert_eq!(SaveTarget::parse("x.png"), Ok(SaveTarget::File("x.png".into())));
        assert!(SaveTarget::parse("").is_err());
    }

    #[test]
    fn saving_to_a_folder_writes_every_medium_and_replaces_no_file() {
        let folder = tempdir().unwrap();
        let folder = folder.path();
        std::fs::write(folder.join("draw.png"), "mine").unwrap();
        let pieces =
            vec![text("said"), image("AAEC", None), image("Aw==", Some("demo://a/../../etc/shot.jpeg"))];
        let out = SaveTarget::Folder(folder.join("."));
        let (rest, messages) = save(pieces, &out, SaveSelection::MediaFirst, "draw").unwrap();
        assert_eq!(rest, [text("said")]);
        assert_eq!(messages.len(), 2);
        assert_eq!(std::fs::read(folder.join("draw.png")).unwrap(), b"mine");
        assert_eq!(std::fs::read(folder.join("draw-2.png")).unwrap(), [0, 1, 2]);
        assert_eq!(std::fs::read(folder.join("shot.jpeg")).unwrap(), [3]);
    }

    #[test]
    fn saving_to_a_file_writes_one_medium_or_all_text() {
        let folder = tempdir().unwrap();
        let path = folder.path().join("out");
        let out = SaveTarget::File(path.clone());
        let (rest, _) =
            save(vec![text("a"), image("AAEC", None)], &out, SaveSelection::MediaFirst, "x").unwrap();
        assert_eq!((rest.len(), std::fs::read(&path).unwrap()), (1, vec![0, 1, 2]));
        save(vec![text("a"), text("b")], &out, SaveSelection::MediaFirst, "x").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"a\nb");
        let several = vec![text("a"), image("AAEC", None)];
        let failure = save(several, &out, SaveSelection::All, "x").unwrap_err();
        assert!(failure.to_string().contains("2 items to save"), "{failure}");
    }

    #[test]
    fn invalid_base64_is_reported_as_a_server_error() {
        let folder = tempdir().unwrap();
        let out = SaveTarget::File(folder.path().join("out"));
        let failure = save(vec![image("!!", None)], &out, SaveSelection::MediaFirst, "x").unwrap_err();
        assert_eq!(failure.exit(), ExitReason::Failed);
        assert!(failure.to_string().contains("image is not valid base64"), "{failure}");
    }
}
