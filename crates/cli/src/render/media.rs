/// What files of a media type are usually called, by media type.
const EXTENSIONS: &[(&str, &str)] = &[
    ("application/gzip", "gz"),
    ("application/javascript", "js"),
    ("application/json", "json"),
    ("application/octet-stream", "bin"),
    ("application/pdf", "pdf"),
    ("application/xml", "xml"),
    ("application/yaml", "yaml"),
    ("application/zip", "zip"),
    ("audio/aac", "aac"),
    ("audio/flac", "flac"),
    ("audio/mp4", "m4a"),
    ("audio/mpeg", "mp3"),
    ("audio/ogg", "ogg"),
    ("audio/wav", "wav"),
    ("audio/wave", "wav"),
    ("audio/webm", "weba"),
    ("audio/x-wav", "wav"),
    ("image/avif", "avif"),
    ("image/bmp", "bmp"),
    ("image/gif", "gif"),
    ("image/jpeg", "jpg"),
    ("image/png", "png"),
    ("image/svg+xml", "svg"),
    ("image/tiff", "tiff"),
    ("image/webp", "webp"),
    ("text/css", "css"),
    ("text/csv", "csv"),
    ("text/html", "html"),
    ("text/markdown", "md"),
    ("text/plain", "txt"),
    ("video/mp4", "mp4"),
    ("video/webm", "webm"),
];

/// Returns the extension of files of a media type, or nothing for a type that we do not know.
pub(crate) fn extension(mime_type: &str) -> Option<&'static str> {
    let essence = mime_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let known = EXTENSIONS.iter().find(|(name, _)| *name == essence).map(|(_, extension)| *extension);
    known.or_else(|| {
        let by_suffix = |suffix: &str| essence.ends_with(suffix);
        if by_suffix("+json") {
            Some("json")
        } else if by_suffix("+xml") {
            Some("xml")
        } else if essence.starts_with("text/") {
            Some("txt")
        } else {
            None
        }
    })
}

/// Makes a file name from a name of a server: no path, no leading dot, no shell metacharacters.
pub(crate) fn file_stem(name: &str) -> String {
    let last = name.rsplit(['/', '\\']).find(|part| !part.is_empty()).unwrap_or_default();
    let kept: String = last
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' })
        .take(64)
        .collect();
    let kept = kept.trim_matches(['.', '_', '-']);
    if kept.is_empty() { "content".to_owned() } else { kept.to_owned() }
}

/// Formats a size.
pub(crate) fn format_size(bytes: usize) -> String {
    match bytes {
        1 => "1 byte".to_owned(),
        0..=9_999 => format!("{bytes} bytes"),
        10_000..=9_999_999 => format!("{} KiB", bytes.div_ceil(1 << 10)),
        _ => format!("{} MiB", bytes.div_ceil(1 << 20)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_types_have_the_usual_extensions() {
        for (mime_type, expected) in [
            ("image/png", Some("png")),
            ("Image/PNG; q=1", Some("png")),
            ("text/x-rust", Some("txt")),
            ("text/plain;charset=utf-8", Some("txt")),
            ("application/ld+json", Some("json")),
            ("application/x-unheard-of", None),
            ("../../etc/passwd", None),
            ("", None),
        ] {
            assert_eq!(extension(mime_type), expected, "{mime_type}");
        }
    }

    #[test]
    fn file_names_never_lead_anywhere() {
        for (name, stem) in [
            ("file:///home/ann/report.pdf", "report.pdf"),
            ("../../etc/passwd", "passwd"),
            ("..", "content"),
            (".bashrc", "bashrc"),
            ("a b\u{1b}[2J", "a_b__2J"),
            ("demo://", "demo"),
            ("C:\\windows\\cmd.exe", "cmd.exe"),
            ("-rf", "rf"),
            ("", "content"),
        ] {
            assert_eq!(file_stem(name), stem, "{name}");
        }
        assert!(file_stem(&"x".repeat(5_000)).len() <= 64);
    }

    #[test]
    fn sizes_are_formatted_in_readable_units() {
        assert_eq!([1, 70, 20_000, 50_000_000].map(format_size), ["1 byte", "70 bytes", "20 KiB", "48 MiB"]);
    }
}
