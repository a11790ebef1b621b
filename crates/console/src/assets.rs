//! The files of the page, embedded in the program.

use bytes::Bytes;

/// A file of the page.
#[derive(Debug)]
pub(crate) struct PageAsset {
    name: &'static str,
    pub(crate) content_type: &'static str,
    content: &'static [u8],
}

impl PageAsset {
    /// Finds the file of a path below that of the console.
    pub(crate) fn find(name: &str) -> Option<&'static Self> {
        let name = if name.is_empty() { "index.html" } else { name };
        ASSETS.iter().find(|asset| asset.name == name)
    }

    pub(crate) fn content(&self) -> Bytes {
        Bytes::from_static(self.content)
    }
}

macro_rules! assets {
    ($($name:literal: $content_type:expr),* $(,)?) => {
        &[$(PageAsset { name: $name, content_type: $content_type, content: include_bytes!(concat!("../page/", $name)) }),*]
    };
}

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";

const ASSETS: &[PageAsset] = assets! {
    "index.html": HTML,
    "style.css": CSS,
    "app.js": SCRIPT,
    "arguments_editor.js": SCRIPT,
    "call_list.js": SCRIPT,
    "calls.js": SCRIPT,
    "completion.js": SCRIPT,
    "confirm.js": SCRIPT,
    "copy.js": SCRIPT,
    "cost.js": SCRIPT,
    "detail.js": SCRIPT,
    "diff.js": SCRIPT,
    "dom.js": SCRIPT,
    "figures.js": SCRIPT,
    "filter.js": SCRIPT,
    "format.js": SCRIPT,
    "grid.js": SCRIPT,
    "icon.svg": SVG,
    "json_view.js": SCRIPT,
    "keys.js": SCRIPT,
    "latency_plot.js": SCRIPT,
    "main.js": SCRIPT,
    "mcp_request.js": SCRIPT,
    "note_list.js": SCRIPT,
    "overview.js": SCRIPT,
    "pages.css": CSS,
    "pages.js": SCRIPT,
    "pairs.js": SCRIPT,
    "plot.js": SCRIPT,
    "question_form.js": SCRIPT,
    "question_watch.js": SCRIPT,
    "questions.js": SCRIPT,
    "record.js": SCRIPT,
    "record_button.js": SCRIPT,
    "registry.js": SCRIPT,
    "result_view.js": SCRIPT,
    "route.js": SCRIPT,
    "router.js": SCRIPT,
    "schema.js": SCRIPT,
    "schema_check.js": SCRIPT,
    "schema_fields.js": SCRIPT,
    "schema_form.js": SCRIPT,
    "server_log.js": SCRIPT,
    "server_order.js": SCRIPT,
    "server_panel.js": SCRIPT,
    "servers.js": SCRIPT,
    "session.js": SCRIPT,
    "sessions.js": SCRIPT,
    "sign_in.js": SCRIPT,
    "store.js": SCRIPT,
    "stream.js": SCRIPT,
    "streams.js": SCRIPT,
    "table.js": SCRIPT,
    "theme.js": SCRIPT,
    "timeline.css": CSS,
    "timeline.js": SCRIPT,
    "timeline_canvas.js": SCRIPT,
    "timeline_spans.js": SCRIPT,
    "try.css": CSS,
    "try.js": SCRIPT,
    "try_catalog.js": SCRIPT,
    "try_history.js": SCRIPT,
    "try_item.js": SCRIPT,
    "try_list.js": SCRIPT,
    "try_resource.js": SCRIPT,
    "try_run.js": SCRIPT,
    "uri_template.js": SCRIPT,
};

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    #[test]
    fn every_file_of_the_page_is_embedded() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("page");
        let files =
            std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        // The types are for the checker alone.
        let files: BTreeSet<String> =
            files.filter(|name| !name.ends_with(".d.ts") && name != "tsconfig.json").collect();
        let embedded: BTreeSet<String> = ASSETS.iter().map(|asset| asset.name.to_owned()).collect();
        assert_eq!(embedded, files);
    }

    #[test]
    fn page_loads_nothing_from_elsewhere_and_has_no_inline_code() {
        for asset in ASSETS {
            let text = std::str::from_utf8(asset.content).unwrap();
            let text = text.replace("http://www.w3.org/2000/svg", "");
            assert!(!text.contains("http:") && !text.contains("https:"), "{}", asset.name);
            for forbidden in [
                "innerHTML",
                "outerHTML",
                "insertAdjacentHTML",
                "document.write",
                "eval(",
                "Function(",
                "@import url",
            ] {
                assert!(!text.contains(forbidden), "{} has {forbidden}", asset.name);
            }
            if asset.content_type == HTML {
                let handler = |word: &&str| word.starts_with("on") && word.contains('=');
                assert_eq!(text.split_whitespace().find(handler), None);
                assert!(
                    !text.contains("style=") && !text.contains("<style") && !text.contains("javascript:")
                );
                assert_eq!(text.matches("<script").count(), 1);
            }
        }
    }
}
