//! Source files: those of the crates without their tests, and all others.

use std::fs;
use std::path::Path;

use crate::TaskResult;

/// One source file.
#[derive(Debug)]
pub(super) struct SourceFile {
    /// The name of its crate's folder.
    pub(super) krate: String,
    /// Its path below the root of the repository.
    pub(super) path: String,
    /// The number of the first line of the text in the file.
    first_line: usize,
    /// The text without the tests of the file, or these alone.
    pub(super) text: String,
}

/// The source files of the workspace.
#[derive(Debug, Default)]
pub(super) struct SourceTree {
    /// The crates, without their tests.
    pub(super) product: Vec<SourceFile>,
    /// The tests of the crates, the examples, and the programs that test the product.
    pub(super) tooling: Vec<SourceFile>,
}

/// The start of the tests in a file of the product.
const TESTS: &str = "\n#[cfg(test)]\nmod tests {";

/// Folders beside `crates` that are measured.
const TOOLING: &[&str] = &["conformance", "examples", "interop", "xtask"];

impl SourceTree {
    /// Reads the source files of all crates and programs.
    pub(super) fn read(root: &Path) -> TaskResult<Self> {
        let mut tree = Self::default();
        for krate in fs::read_dir(root.join("crates"))? {
            let krate = krate?;
            let name = krate.file_name().to_string_lossy().into_owned();
            for folder in ["src", "tests", "benches", "examples"] {
                let path = krate.path().join(folder);
                if path.is_dir() {
                    tree.read_folder(root, &path, &name, folder == "src")?;
                }
            }
        }
        for name in TOOLING {
            tree.read_folder(root, &root.join(name), name, false)?;
        }
        Ok(tree)
    }

    fn read_folder(&mut self, root: &Path, folder: &Path, krate: &str, is_product: bool) -> TaskResult {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if path.is_dir() {
                if !["target", "node_modules"].contains(&&*name) {
                    self.read_folder(root, &path, krate, is_product && name != "tests")?;
                }
            } else if is_product && name == "windows.rs" {
                // It has alternatives to what `unix.rs` defines, under the same names.
            } else if name.ends_with(".rs") {
                let shown = path.strip_prefix(root).unwrap_or(&path).to_string_lossy();
                self.add(krate, &shown, &fs::read_to_string(&path)?, is_product && name != "tests.rs");
            }
        }
        Ok(())
    }

    fn add(&mut self, krate: &str, path: &str, text: &str, is_product: bool) {
        let part = |first_line, text: &str| SourceFile {
            krate: krate.to_owned(),
            path: path.to_owned(),
            first_line,
            text: text.to_owned(),
        };
        if !is_product {
            return self.tooling.push(part(1, text));
        }
        let product = SourceFile::new(krate, path, text);
        if let Some((_, tests)) = text.split_once(TESTS) {
            // Their first line is the rest of the line with the brace.
            let lines = |text: &str| text.matches('\n').count();
            let first_line = 1 + lines(&product.text) + lines(TESTS);
            self.tooling.push(part(first_line, tests));
        }
        self.product.push(product);
    }
}

impl SourceFile {
    /// Creates a file of the product, without its tests.
    pub(super) fn new(krate: &str, path: &str, text: &str) -> Self {
        let own = text.split_once(TESTS).map_or(text, |(own, _)| own);
        Self { krate: krate.to_owned(), path: path.to_owned(), first_line: 1, text: own.to_owned() }
    }

    pub(super) fn lines(&self) -> usize {
        self.text.lines().count()
    }

    /// Returns the text of its comments, a line each.
    pub(super) fn comments(&self) -> impl Iterator<Item = &str> {
        self.numbered_comments().map(|(_, comment)| comment)
    }

    /// Returns the text of its comments, each with the number of its line in the file.
    pub(super) fn numbered_comments(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().zip(self.first_line..).filter_map(|(line, number)| {
            let comment = line.trim_start().strip_prefix("//")?;
            Some((number, comment.trim_start_matches(['/', '!'])))
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

    /// Returns the enums that it defines at the top level, each with its name and the text of its variants.
    #[cfg(test)]
    pub(super) fn enums(&self) -> Vec<(&str, &str)> {
        let mut found = Vec::new();
        for (start, line) in line_starts(&self.text) {
            let Some(rest) = visible_item(line).strip_prefix("enum ") else { continue };
            let name = rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default();
            let after = self.text.get(start + line.len()..).unwrap_or_default();
            let body = match line.trim_end().ends_with('{') {
                true => after.split_once("\n}").map_or(after, |(body, _)| body),
                false => rest,
            };
            found.push((name, body));
        }
        found
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

/// Returns the lines of a text, each with the position of its first byte.
#[cfg(test)]
fn line_starts(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut start = 0;
    text.split_inclusive('\n').map(move |line| {
        let own = start;
        start += line.len();
        (own, line)
    })
}

/// Leaves out how far an item can be seen.
fn visible_item(line: &str) -> &str {
    let Some(rest) = line.strip_prefix("pub") else { return line };
    match rest.strip_prefix('(').and_then(|rest| rest.split_once(')')) {
        Some((_, item)) => item.trim_start(),
        None => rest.trim_start(),
    }
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
        let file = SourceFile::new("a", "a.rs", SAMPLE);
        assert_eq!(file.types().collect::<Vec<_>>(), ["Thing", "Other", "Does"]);
        assert_eq!(file.comments().collect::<Vec<_>>(), [" A module.", " A thing.", " Why."]);
        assert_eq!(file.function_lengths(), [6]);
        assert_eq!(file.enums(), [("Other", "Other { A }\n")]);
    }

    #[test]
    fn tests_of_a_product_file_belong_to_the_tooling() {
        let mut tree = SourceTree::default();
        tree.add("a", "a.rs", SAMPLE, true);
        tree.add("a", "tests/b.rs", SAMPLE, false);
        assert_eq!(tree.product.len(), 1);
        let types: Vec<Vec<_>> = tree.tooling.iter().map(|file| file.types().collect()).collect();
        assert_eq!(types, [vec!["Hidden"], vec!["Thing", "Other", "Does", "Hidden"]]);
    }

    #[test]
    fn comments_have_the_number_of_their_line_in_the_file() {
        let text = "//! One.\nfn f() {}\n\n#[cfg(test)]\nmod tests {\n    // Six.\n}\n";
        let mut tree = SourceTree::default();
        tree.add("a", "crates/a/src/a.rs", text, true);
        let comments = |files: &[SourceFile]| {
            let all = files.iter().flat_map(SourceFile::numbered_comments);
            all.map(|(number, text)| (number, text.trim().to_owned())).collect::<Vec<_>>()
        };
        assert_eq!(comments(&tree.product), [(1, "One.".to_owned())]);
        assert_eq!(comments(&tree.tooling), [(6, "Six.".to_owned())]);
        assert_eq!(tree.tooling[0].path, "crates/a/src/a.rs");
    }
}
