use std::path::{Component, Path, PathBuf};
use std::time::SystemTime;

use trunkline_server::protocol::model;

/// A manifest that was found.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ManifestFile {
    /// The canonical path.
    pub(super) path: PathBuf,
    pub(super) size: u64,
    pub(super) modified: Option<SystemTime>,
}

impl ManifestFile {
    /// Returns the manifest as a resource, named by its path relative to a folder.
    pub(super) fn resource(&self, directory: &Path) -> Option<model::Resource> {
        let mut resource = model::Resource::new(self.uri()?, relative_path(directory, &self.path));
        resource.mime_type = Some(media_type(&self.path).to_owned());
        resource.size = Some(self.size);
        Some(resource)
    }

    /// Returns the URI of the file; `None` for a path that is not UTF-8.
    pub(super) fn uri(&self) -> Option<String> {
        self.path.to_str().map(|path| format!("file://{}", encode(path)))
    }
}

/// Percent-encodes a path for a URI.
fn encode(path: &str) -> String {
    let mut encoded = String::with_capacity(path.len());
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

/// Returns the path of a file relative to a folder, with `..` for parent folders.
fn relative_path(directory: &Path, path: &Path) -> String {
    let shared = directory.components().zip(path.components()).take_while(|(a, b)| a == b).count();
    let up = directory.components().skip(shared).map(|_| Component::ParentDir);
    let relative: PathBuf = up.chain(path.components().skip(shared)).collect();
    relative.to_string_lossy().into_owned()
}

fn media_type(path: &Path) -> &'static str {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("yaml" | "yml") => "application/yaml",
        Some("json") => "application/json",
        Some("toml") => "application/toml",
        Some("md") => "text/markdown",
        _ => "text/plain",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn manifest_resource_has_encoded_uri_and_relative_name() {
        for (path, uri, name, media) in [
            ("/w/a/golem.yaml", "file:///w/a/golem.yaml", "golem.yaml", "application/yaml"),
            ("/w/a/b/golem.yaml", "file:///w/a/b/golem.yaml", "b/golem.yaml", "application/yaml"),
            ("/w/golem.yaml", "file:///w/golem.yaml", "../golem.yaml", "application/yaml"),
            ("/w/a/b c/é%.json", "file:///w/a/b%20c/%C3%A9%25.json", "b c/é%.json", "application/json"),
            ("/w/a/Makefile", "file:///w/a/Makefile", "Makefile", "text/plain"),
        ] {
            let found = ManifestFile { path: path.into(), size: 3, modified: None };
            let resource = found.resource(Path::new("/w/a")).unwrap();
            assert_eq!((resource.uri.as_str(), resource.name.as_str()), (uri, name));
            assert_eq!(resource.mime_type.as_deref(), Some(media));
        }
    }
}
