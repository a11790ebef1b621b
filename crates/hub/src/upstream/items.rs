//! Validates the items of a server's list.

use std::collections::HashSet;

use trunkline_client::ItemList;
use trunkline_protocol::codec::Dialect;
use trunkline_protocol::model::{Prompt, Resource, ResourceTemplate, Tool};
use trunkline_protocol::{JsonObject, JsonWriter, shorten};
use trunkline_server::UpstreamItem;

use crate::limits::HubLimits;
use crate::loop_detection::{HubId, ViaPath};

/// The longest name or URI of an item: list cursors contain one.
const MAX_KEY_BYTES: usize = 8 * 1024;

/// The most skipped, and the most repaired, items of one list that are described.
const MAX_REPORTED_ITEMS: usize = 20;

/// The suffix of a truncated text.
const TRUNCATION_MARK: &str = "… (cut)";

/// An item of a list.
pub(super) trait CatalogueItem: Clone {
    /// The name of the list in reports.
    const LIST: &'static str;

    /// Returns the name or URI that identifies it.
    fn key(&self) -> &str;

    fn meta(&self) -> Option<&JsonObject>;

    /// Returns the texts for users and models.
    fn texts(&mut self) -> Vec<&mut String>;

    fn write(&self, writer: &mut JsonWriter);
}

macro_rules! catalogue_item {
    ($($type:ident of $list:literal by $key:ident, texts $texts:expr;)*) => {
        $(impl CatalogueItem for $type {
            const LIST: &'static str = $list;

            fn key(&self) -> &str {
                &self.$key
            }

            fn meta(&self) -> Option<&JsonObject> {
                self.meta.as_ref()
            }

            fn texts(&mut self) -> Vec<&mut String> {
                let texts: fn(&mut Self) -> Vec<&mut String> = $texts;
                texts(self)
            }

            fn write(&self, writer: &mut JsonWriter) {
                $type::write(self, Dialect::NEWEST, writer);
            }
        })*
    };
}

catalogue_item! {
    Tool of "tools" by name, texts |tool| {
        let hinted = tool.annotations.as_mut().and_then(|hints| hints.title.as_mut());
        tool.title.iter_mut().chain(&mut tool.description).chain(hinted).collect()
    };
    Prompt of "prompts" by name, texts |prompt| {
        let arguments = prompt.arguments.iter_mut();
        let arguments = arguments.flat_map(|each| each.title.iter_mut().chain(&mut each.description));
        prompt.title.iter_mut().chain(&mut prompt.description).chain(arguments).collect()
    };
    Resource of "resources" by uri, texts |resource| {
        let texts = resource.title.iter_mut().chain(&mut resource.description);
        texts.chain([&mut resource.name]).collect()
    };
    ResourceTemplate of "resource templates" by uri_template, texts |template| {
        let texts = template.title.iter_mut().chain(&mut template.description);
        texts.chain([&mut template.name]).collect()
    };
}

/// The accepted items of a list.
pub(super) struct AcceptedList<T> {
    pub(super) items: Vec<T>,
    pub(super) report: ListReport,
}

/// The items of a list that were skipped, repaired or truncated.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ListReport {
    pub(super) skipped: ProblemLines,
    pub(super) repaired: ProblemLines,
    pub(super) truncated: usize,
}

/// Lines about items; only the first ones are stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ProblemLines {
    first: Vec<String>,
    count: usize,
}

impl ProblemLines {
    fn push(&mut self, line: impl FnOnce() -> String) {
        self.count += 1;
        if self.first.len() < MAX_REPORTED_ITEMS {
            self.first.push(line());
        }
    }

    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Returns the lines, each prefixed with its list, and the number of further ones.
    pub(super) fn lines(&self, list: &str) -> Vec<String> {
        let more = self.count - self.first.len();
        let more = (more > 0).then(|| format!("{list}: and {more} more"));
        self.first.iter().map(|line| format!("{list}: {line}")).chain(more).collect()
    }
}

/// Accepts the valid items of a list, and counts the others.
pub(super) fn accept_items<T: CatalogueItem>(
    list: &ItemList<T>,
    limits: &HubLimits,
    hub: &HubId,
) -> AcceptedList<T> {
    let mut report = ListReport::default();
    for item in &list.skipped {
        report.skipped.push(|| format!("{}: {}", item.name, item.reason));
    }
    for item in &list.repaired {
        report.repaired.push(|| format!("{}: {}", item.name, item.repairs));
    }
    let (mut items, mut keys, mut circular) = (Vec::with_capacity(list.len()), HashSet::new(), 0_usize);
    for received in list {
        if ViaPath::from_meta(received.meta()).check_loop(hub).is_err() {
            circular += 1;
            continue;
        }
        let mut item = T::clone(received);
        let cut = truncate_texts(&mut item, limits.text_bytes);
        if cut > 0 {
            report.truncated += cut;
            report.repaired.push(|| format!("{}: texts that are too long: {cut}", shorten(item.key())));
        }
        let problem = if item.key().len() > MAX_KEY_BYTES {
            Some("its name is too long")
        } else if received.raw().as_str().len() > limits.item_bytes
            && encoded_bytes(&item) > limits.item_bytes
        {
            Some("it is too large")
        } else if !keys.insert(item.key().to_owned()) {
            Some("it is listed more than once")
        } else {
            None
        };
        match problem {
            Some(problem) => report.skipped.push(|| format!("{}: {problem}", shorten(item.key()))),
            None => items.push(item),
        }
    }
    if circular > 0 {
        let problem = "would lead back to this hub, which is among the servers of that one";
        report.skipped.push(|| format!("{circular} of them {problem}"));
        report.skipped.count += circular - 1;
    }
    UpstreamItem::LeftOut.count(report.skipped.count);
    UpstreamItem::Repaired.count(list.repaired.len());
    UpstreamItem::Truncated.count(report.truncated);
    AcceptedList { items, report }
}

/// Truncates texts that are too long, each at a character boundary; returns how many.
fn truncate_texts<T: CatalogueItem>(item: &mut T, most: usize) -> usize {
    let mut count = 0;
    for text in item.texts().into_iter().filter(|text| text.len() > most) {
        let end =
            (0..=most.saturating_sub(TRUNCATION_MARK.len())).rev().find(|end| text.is_char_boundary(*end));
        text.truncate(end.unwrap_or_default());
        text.push_str(TRUNCATION_MARK);
        count += 1;
    }
    count
}

/// Returns the encoded length of an item.
fn encoded_bytes<T: CatalogueItem>(item: &T) -> usize {
    let mut writer = JsonWriter::with_capacity(1024);
    item.write(&mut writer);
    writer.len()
}
