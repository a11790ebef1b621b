//! What a list holds now, against what it held before.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Value, json};
use trunkline_client::{Error, List, Watch};

use crate::connect::{Session, failed};
use crate::exit::Failure;
use crate::terminal::visible_line;

/// The lists as they were last read: what each item was, by its name.
#[derive(Debug, Default)]
pub(super) struct Catalogue {
    tools: BTreeMap<String, String>,
    prompts: BTreeMap<String, String>,
    resources: BTreeMap<String, String>,
}

/// What became of a list.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Difference {
    added: Vec<String>,
    removed: Vec<String>,
    changed: Vec<String>,
}

impl Catalogue {
    /// Reads the lists that are to be watched, as far as the server has them, and says what has become of each.
    ///
    /// # Errors
    /// The server cannot be reached any more.
    pub(super) async fn take_up(
        &mut self,
        watch: &Watch,
        session: &Session,
    ) -> Result<Vec<(&'static str, Difference)>, Failure> {
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

    pub(super) async fn tools(&mut self, session: &Session) -> Result<Difference, Failure> {
        let now = items(session.client.tools().await, |tool| tool.name.clone())?;
        Ok(replace(&mut self.tools, now))
    }

    pub(super) async fn prompts(&mut self, session: &Session) -> Result<Difference, Failure> {
        let now = items(session.client.prompts().await, |prompt| prompt.name.clone())?;
        Ok(replace(&mut self.prompts, now))
    }

    /// One notice is for resources and for templates.
    pub(super) async fn resources(&mut self, session: &Session) -> Result<Difference, Failure> {
        let mut now = items(session.client.resources().await, |resource| resource.uri.clone())?;
        now.extend(items(session.client.templates().await, |template| template.uri_template.clone())?);
        Ok(replace(&mut self.resources, now))
    }
}

type Listed<T> = Result<std::sync::Arc<List<T>>, Error>;

/// Takes a list by the names of its items; a server that does not have it has an empty one.
fn items<T>(list: Listed<T>, name: impl Fn(&T) -> String) -> Result<BTreeMap<String, String>, Failure> {
    match list {
        Ok(list) => Ok(list.iter().map(|item| (name(item), item.raw().as_str().to_owned())).collect()),
        Err(Error::Refused(_) | Error::Unsupported(_)) => Ok(BTreeMap::new()),
        Err(error) => Err(failed(error)),
    }
}

fn replace(known: &mut BTreeMap<String, String>, now: BTreeMap<String, String>) -> Difference {
    let before = std::mem::replace(known, now);
    let names = |keep: &dyn Fn(&str, &str) -> bool, of: &BTreeMap<String, String>| {
        of.iter().filter(|(name, item)| keep(name, item)).map(|(name, _)| name.clone()).collect()
    };
    Difference {
        added: names(&|name, _| !before.contains_key(name), known),
        removed: names(&|name, _| !known.contains_key(name), &before),
        changed: names(&|name, item| before.get(name).is_some_and(|old| old != item), known),
    }
}

impl Difference {
    /// Reports whether the list is as it was.
    pub(super) fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty() && self.changed.is_empty()
    }

    /// Writes the difference for programs.
    pub(super) fn to_json(&self, list: &str) -> Value {
        json!({ "change": list, "added": self.added, "removed": self.removed, "changed": self.changed })
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<_> = [("added", &self.added), ("removed", &self.removed), ("changed", &self.changed)]
            .into_iter()
            .filter(|(_, names)| !names.is_empty())
            .map(|(what, names)| {
                let names: Vec<_> = names.iter().map(|name| visible_line(name)).collect();
                format!("{what} {}", names.join(", "))
            })
            .collect();
        if parts.is_empty() { f.write_str("as before") } else { f.write_str(&parts.join("; ")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(items: &[(&str, &str)]) -> BTreeMap<String, String> {
        items.iter().map(|(name, item)| ((*name).to_owned(), (*item).to_owned())).collect()
    }

    #[test]
    fn a_list_is_told_by_what_came_went_and_became_another() {
        let mut known = list(&[("a", "1"), ("b", "1"), ("c", "1")]);
        let difference = replace(&mut known, list(&[("a", "1"), ("b", "2"), ("d\x1b", "1")]));
        assert_eq!(difference.to_string(), "added d\\x1b; removed c; changed b");
        assert_eq!(
            difference.to_json("tools"),
            json!({ "change": "tools", "added": ["d\x1b"], "removed": ["c"], "changed": ["b"] })
        );
        let again = known.clone();
        assert_eq!(replace(&mut known, again).to_string(), "as before");
    }
}
