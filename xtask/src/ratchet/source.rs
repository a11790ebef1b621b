//! Source files of the crates, without their tests.

use std::fs;
use std::path::Path;

use crate::TaskResult;

/// One source file.
#[derive(Debug)]
pub(super) struct SourceFile {
    /// The name of its crate's folder.
    pub(super) krate: String,
    /// The text without the tests of the file.
    pub(super) text: String,
}

impl SourceFile {
    pub(super) fn new(krate: &str, text: &str) -> Self {
        let own = text.split_once("\n#[cfg(test)]\nmod tests {").map_or(text, |(own, _)| own);
        Self { krate: krate.to_owned(), text: own.to_owned() }
    }

    pub(super) fn lines(&self) -> usize {
        self.text.lines().count()
    }

    /// Returns the text of its comments, a line each.
    pub(super) fn comments(&self) -> impl Iterator<Item = &str> {
        self.text.lines().filter_map(|line| {
            let comment = line.trim_start().strip_prefix("//")?;
            Some(comment.trim_start_matches(['/', '!']))
        })
    }

    /// Returns the structs, enums and traits that it defines. A type with a `cfg` may have one alternative of the same name,
    /// of which one is compiled; the one for `not(…)` is left out.
    pub(super) fn types(&self) -> impl Iterator<Item = &str> {
        let mut is_alternative = false;
        self.text.lines().filter_map(move |line| {
            let line = line.trim_start();
            if line.starts_with("#[") {
                is_alternative |= line.starts_with("#[cfg(not(");
                return None;
            }
            if std::mem::take(&mut is_alternative) {
                return None;
            }
            let item = visible_item(line);
            let keyword =
                ["struct ", "enum ", "trait "].into_iter().find(|keyword| item.starts_with(keyword))?;
            let name = item.strip_prefix(keyword)?;
            let end = name.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(name.len());
            name.get(..end).filter(|name| name.starts_with(char::is_uppercase))
        })
    }

    /// Returns how many lines each of its functions has, from its name to its last brace.
    pub(super) fn function_lengths(&self) -> Vec<usize> {
        let lines: Vec<&str> = self.text.lines().collect();
        let mut lengths = Vec::new();
        for (at, line) in lines.iter().enumerate() {
            let item = visible_item(line.trim_start());
            let item = ["const ", "async ", "unsafe "]
                .into_iter()
                .fold(item, |item, word| item.strip_prefix(word).unwrap_or(item));
            if !item.starts_with("fn ") || line.trim_end().ends_with([';', '}']) {
                continue;
            }
            let indent = line.len() - line.trim_start().len();
            let end = format!("{}}}", " ".repeat(indent));
            // What has no body ends with its semicolon.
            let mut rest = lines.iter().enumerate().skip(at + 1);
            let last = rest.find(|(_, line)| {
                **line == end
                    || (line.ends_with(';') && line.starts_with(&format!("{})", " ".repeat(indent))))
            });
            if let Some((last, line)) = last
                && *line == end
            {
                lengths.push(last - at + 1);
            }
        }
        lengths
    }
}

/// Leaves out how far an item can be seen.
fn visible_item(line: &str) -> &str {
    let Some(rest) = line.strip_prefix("pub") else { return line };
    match rest.strip_prefix('(').and_then(|rest| rest.split_once(')')) {
        Some((_, item)) => item.trim_start(),
        None => rest.trim_start(),
    }
}

/// Reads the source files of all crates.
pub(super) fn production(root: &Path) -> TaskResult<Vec<SourceFile>> {
    let mut found = Vec::new();
    for krate in fs::read_dir(root.join("crates"))? {
        let krate = krate?;
        read_folder(&krate.path().join("src"), &krate.file_name().to_string_lossy(), &mut found)?;
    }
    Ok(found)
}

fn read_folder(folder: &Path, krate: &str, found: &mut Vec<SourceFile>) -> TaskResult {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() && name != "tests" {
            read_folder(&path, krate, found)?;
        } else if name.ends_with(".rs") && !["tests.rs", "windows.rs"].contains(&&*name) {
            // `windows.rs` has alternatives to what `unix.rs` defines, under the same names.
            found.push(SourceFile::new(krate, &fs::read_to_string(&path)?));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: &str = "\
//! A module.
use x::Y;

/// A thing.
pub(crate) struct Thing<T> {
    field: T,
}

enum Other { A }

impl Thing<()> {
    // Why.
    pub(super) async fn act(
        &self,
    ) -> u8 {
        let s = \"}\";
        1
    }

    fn short(&self) {}
}

trait Does {
    fn later(
        &self,
    );
}

#[cfg(test)]
mod tests {
    struct Hidden;
}
";

    #[test]
    fn types_comments_and_functions_are_found_and_tests_are_not() {
        let file = SourceFile::new("a", SAMPLE);
        assert_eq!(file.types().collect::<Vec<_>>(), ["Thing", "Other", "Does"]);
        assert_eq!(file.comments().collect::<Vec<_>>(), [" A module.", " A thing.", " Why."]);
        assert_eq!(file.function_lengths(), [6]);
    }
}
