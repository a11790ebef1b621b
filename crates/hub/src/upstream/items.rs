//! Validates the items of a server's list.

use std::collections::HashSet;

use trunkline_client::ItemList;
use trunkline_protocol::codec::Dialect;
use trunkline_protocol::model::{Icon, Prompt, PromptArgument, Resource, ResourceTemplate, Tool};
use trunkline_protocol::{JsonObject, JsonWriter, shorten};
use trunkline_server::UpstreamItem;

use super::bounded_text::{bounded_line, truncate};
use crate::limits::HubLimits;
use crate::loop_detection::{HubId, ViaPath};

/// The longest name or URI of an item: list cursors contain one.
const MAX_KEY_BYTES: usize = 8 * 1024;

/// The most skipped, and the most repaired, items of one list that are described.
const MAX_REPORTED_ITEMS: usize = 20;

/// An item of a list.
pub(super) trait ListedItem: Clone {
    /// The name of the list in reports.
    const LIST: &'static str;

    /// Returns the name or URI that identifies it.
    fn key(&self) -> &str;

    fn meta(&self) -> Option<&JsonObject>;

    /// Returns the texts for users and models.
    fn texts(&mut self) -> Vec<&mut String>;

    /// Returns the icons and the number of arguments, each of which takes memory of its own.
    fn parts(&self) -> (&[Icon], usize);

    fn write(&self, writer: &mut JsonWriter);
}

macro_rules! listed_item {
    ($($type:ident of $list:literal by $key:ident, arguments $arguments:expr, texts $texts:expr;)*) => {
        $(impl ListedItem for $type {
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

            fn parts(&self) -> (&[Icon], usize) {
                let arguments: fn(&Self) -> usize = $arguments;
                (&self.icons, arguments(self))
            }

            fn write(&self, writer: &mut JsonWriter) {
                $type::write(self, Dialect::NEWEST, writer);
            }
        })*
    };
}

listed_item! {
    Tool of "tools" by name, arguments |_| 0, texts |tool| {
        let hinted = tool.annotations.as_mut().and_then(|hints| hints.title.as_mut());
        tool.title.iter_mut().chain(&mut tool.description).chain(hinted).collect()
    };
    Prompt of "prompts" by name, arguments |prompt| prompt.arguments.len(), texts |prompt| {
        let arguments = prompt.arguments.iter_mut();
        let arguments = arguments.flat_map(|each| each.title.iter_mut().chain(&mut each.description));
        prompt.title.iter_mut().chain(&mut prompt.description).chain(arguments).collect()
    };
    Resource of "resources" by uri, arguments |_| 0, texts |resource| {
        let texts = resource.title.iter_mut().chain(&mut resource.description);
        texts.chain([&mut resource.name]).collect()
    };
    ResourceTemplate of "resource templates" by uri_template, arguments |_| 0, texts |template| {
        let texts = template.title.iter_mut().chain(&mut template.description);
        texts.chain([&mut template.name]).collect()
    };
}

/// The accepted items of a list.
pub(super) struct AcceptedList<T> {
    pub(super) items: Vec<T>,
    /// About the memory of the items.
    pub(super) bytes: usize,
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
            self.first.push(bounded_line(line()));
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
pub(super) fn accept_items<T: ListedItem>(
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
    let mut bytes = 0;
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
            None => {
                bytes += size_of::<T>() + parts_bytes(&item) + received.raw().as_str().len();
                items.push(item);
            }
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
    AcceptedList { items, bytes, report }
}

/// Returns the memory of the parts of an item beside their texts, which may be much shorter than that.
fn parts_bytes<T: ListedItem>(item: &T) -> usize {
    let (icons, arguments) = item.parts();
    let sizes: usize = icons.iter().map(|icon| icon.sizes.len()).sum();
    size_of_val(icons) + sizes * size_of::<String>() + arguments * size_of::<PromptArgument>()
}

/// Truncates texts that are too long, each at a character boundary; returns how many.
fn truncate_texts<T: ListedItem>(item: &mut T, most: usize) -> usize {
    let mut count = 0;
    for text in item.texts() {
        count += usize::from(truncate(text, most));
    }
    count
}

/// Returns the encoded length of an item.
fn encoded_bytes<T: ListedItem>(item: &T) -> usize {
    let mut writer = JsonWriter::with_capacity(1024);
    item.write(&mut writer);
    writer.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_arguments_and_icons_are_counted_with_their_memory() {
        let arguments = vec![PromptArgument::new(""); 1000];
        let prompt = Prompt { arguments, ..Prompt::new("p") };
        assert_eq!(parts_bytes(&prompt), 1000 * size_of::<PromptArgument>());
        let icon = Icon { sizes: vec![String::new(); 10], ..Icon::new("") };
        let tool = Tool { icons: vec![icon; 100], ..Tool::default() };
        assert_eq!(parts_bytes(&tool), 100 * (size_of::<Icon>() + 10 * size_of::<String>()));
    }
}
