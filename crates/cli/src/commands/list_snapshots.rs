//! Differences between two fetches of a list.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Value, json};
use trunkline_client::{ChangeFilter, Error, ItemList};

use crate::connect::{CommandSession, call_failure};
use crate::exit::CliFailure;
use crate::terminal::escape_line;

/// The lists as they were last read: what each item was, by its name.
#[derive(Debug, Default)]
pub(super) struct ListSnapshots {
    tools: BTreeMap<String, String>,
    prompts: BTreeMap<String, String>,
    resources: BTreeMap<String, String>,
}

/// The differences of a list.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ListDifference {
    added: Vec<String>,
    removed: Vec<String>,
    changed: Vec<String>,
}

impl ListSnapshots {
    /// Fetches the watched lists that the server has, and returns how each changed.
    ///
    /// # Errors
    /// The server cannot be reached any more.
    pub(super) async fn refresh(
        &mut self,
        watch: &ChangeFilter,
        session: &CommandSession,
    ) -> Result<Vec<(&'static str, ListDifference)>, CliFailure> {
        let mut changed = Vec::new();
        if watch.tools {
            changed.push(("tools", self.tools(session).await?));
        }
        if watch.prompts {
            changed.push(("prompts", self.prompts(session).await?));
        }
        if watch.resources {
            changed.push(("resources", self.resources(session).await?));
        }
        Ok(changed)
    }

    pub(super) async fn tools(&mut self, session: &CommandSession) -> Result<ListDifference, CliFailure> {
        let now = items_by_name(session.client.tools().await, |tool| tool.name.clone())?;
        Ok(replace_list(&mut self.tools, now))
    }

    pub(super) async fn prompts(&mut self, session: &CommandSession) -> Result<ListDifference, CliFailure> {
        let now = items_by_name(session.client.prompts().await, |prompt| prompt.name.clone())?;
        Ok(replace_list(&mut self.prompts, now))
    }

    /// One notification covers resources and templates.
    pub(super) async fn resources(&mut self, session: &CommandSession) -> Result<ListDifference, CliFailure> {
        let mut now = items_by_name(session.client.resources().await, |resource| resource.uri.clone())?;
        now.extend(items_by_name(session.client.templates().await, |template| {
            template.uri_template.clone()
        })?);
        Ok(replace_list(&mut self.resources, now))
    }
}

type ListResult<T> = Result<std::sync::Arc<ItemList<T>>, Error>;

/// Returns a list by the names of its items; a server without the list counts as having an empty one.
fn items_by_name<T>(
    list: ListResult<T>,
    name: impl Fn(&T) -> String,
) -> Result<BTreeMap<String, String>, CliFailure> {
    match list {
        Ok(list) => Ok(list.iter().map(|item| (name(item), item.raw().as_str().to_owned())).collect()),
        Err(Error::ErrorResponse(_) | Error::Unsupported(_)) => Ok(BTreeMap::new()),
        Err(error) => Err(call_failure(error)),
    }
}

fn replace_list(known: &mut BTreeMap<String, String>, now: BTreeMap<String, String>) -> ListDifference {
    let before = std::mem::replace(known, now);
    let names = |keep: &dyn Fn(&str, &str) -> bool, of: &BTreeMap<String, String>| {
        of.iter().filter(|(name, item)| keep(name, item)).map(|(name, _)| name.clone()).collect()
    };
    ListDifference {
        added: names(&|name, _| !before.contains_key(name), known),
        removed: names(&|name, _| !known.contains_key(name), &before),
        changed: names(&|name, item| before.get(name).is_some_and(|old| old != item), known),
    }
}

impl ListDifference {
    /// Reports whether the list is as it was.
    pub(super) fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty() && self.changed.is_empty()
    }

    /// Writes the difference for programs.
    pub(super) fn to_json(&self, list: &str) -> Value {
        json!({ "change": list, "added": self.added, "removed": self.removed, "changed": self.changed })
    }
}

impl fmt::Display for ListDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<_> = [("added", &self.added), ("removed", &self.removed), ("changed", &self.changed)]
            .into_iter()
            .filter(|(_, names)| !names.is_empty())
            .map(|(what, names)| {
                let names: Vec<_> = names.iter().map(|name| escape_line(name)).collect();
                format!("{what} {}", names.join(", "))
            })
            .collect();
        if parts.is_empty() { f.write_str("no change") } else { f.write_str(&parts.join("; ")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(items: &[(&str, &str)]) -> BTreeMap<String, String> {
        items.iter().map(|(name, item)| ((*name).to_owned(), (*item).to_owned())).collect()
    }

    #[test]
    fn list_difference_names_added_removed_and_changed_items() {
        let mut known = list(&[("a", "1"), ("b", "1"), ("c", "1")]);
        let difference = replace_list(&mut known, list(&[("a", "1"), ("b", "2"), ("d\x1b", "1")]));
        assert_eq!(difference.to_string(), "added d\\x1b; removed c; changed b");
        assert_eq!(
            difference.to_json("tools"),
            json!({ "change": "tools", "added": ["d\x1b"], "removed": ["c"], "changed": ["b"] })
        );
        let again = known.clone();
        assert_eq!(replace_list(&mut known, again).to_string(), "no change");
    }
}
