//! Exposed names of the servers' items, so that every name is unique.
//!
//! # Invariants
//!
//! - On a name collision neither item gets the name, and both are reported:
//!   `colliding_names_get_digests_and_the_collision_is_reported`.

mod template;

use std::collections::HashMap;
use std::fmt;

use trunkline_config::ServerName;
use trunkline_protocol::shorten;

pub use self::template::{NameTemplate, NameTemplateError};

/// The kind of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum ItemKind {
    /// A tool.
    Tool,
    /// A prompt.
    Prompt,
    /// A resource, which is named by its URI.
    Resource,
    /// A resource template, which is named by its text.
    Template,
}

impl fmt::Display for ItemKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tool => "tool",
            Self::Prompt => "prompt",
            Self::Resource => "resource",
            Self::Template => "resource template",
        })
    }
}

/// A name that several servers, or a server and the hub itself, would expose, and that therefore none of them gets;
/// or a URI that several servers claim, and that belongs to the first of them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct NameCollision {
    /// The kind of the item.
    pub kind: ItemKind,
    /// The name or URI.
    pub name: String,
    /// The claimants: the server, the item's name there, and the name that it is exposed under instead, if any. The
    /// first claimant of a URI is its owner.
    pub owners: Vec<(ServerName, String, Option<String>)>,
}

impl fmt::Display for NameCollision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let (ItemKind::Resource | ItemKind::Template, [(owner, ..), others @ ..]) =
            (self.kind, self.owners.as_slice())
        {
            let others: Vec<_> = others.iter().map(|(server, ..)| format!("`{server}`")).collect();
            let have = if others.len() == 1 { "has" } else { "have" };
            let (kind, address, others) = (self.kind, shorten(&self.name), others.join(" and "));
            return write!(f, "{kind} `{address}` is served by `{owner}` only; {others} also {have} it");
        }
        let (kind, name) = (self.kind, shorten(&self.name));
        match self.owners.as_slice() {
            [_] => write!(f, "{kind} `{name}` is reserved for the hub")?,
            several => {
                let mut servers: Vec<_> = several.iter().map(|(server, ..)| format!("`{server}`")).collect();
                servers.dedup();
                let is_same = several.iter().all(|(_, item, _)| *item == self.name);
                let maps_to = if is_same { "" } else { " that maps to" };
                match servers.as_slice() {
                    [server] => write!(f, "{server} has several {kind}s that map to `{name}`")?,
                    [one, other] => write!(f, "{one} and {other} both have a {kind}{maps_to} `{name}`")?,
                    all => write!(f, "{} all have a {kind}{maps_to} `{name}`", all.join(", "))?,
                }
                if several.iter().all(|(.., instead)| instead.is_none()) {
                    return f.write_str(if several.len() == 2 {
                        "; neither is exposed"
                    } else {
                        "; none is exposed"
                    });
                }
            }
        }
        for (server, item, instead) in &self.owners {
            write!(f, "; `{}` of `{server}` is ", shorten(item))?;
            match instead {
                Some(instead) => write!(f, "exposed as `{instead}`")?,
                None => f.write_str("not exposed")?,
            }
        }
        Ok(())
    }
}

/// An item that gets an exposed name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NamedItem<'a> {
    /// The naming template of its server.
    pub(crate) template: &'a NameTemplate,
    pub(crate) server: &'a ServerName,
    /// Its name at the server.
    pub(crate) name: &'a str,
}

/// Assigns every item a unique name, or none; the order of the items does not matter.
///
/// A name that exactly one item generates without sanitizing belongs to that item. A name that several items generate
/// is given to none: all of them get names with a digest of their origin, and an item for which even that is taken
/// gets none. The same applies to an item with the name of one of the hub's own tools.
pub(crate) fn assign(
    kind: ItemKind,
    items: &[NamedItem<'_>],
    own: &[&str],
) -> (Vec<Option<String>>, Vec<NameCollision>) {
    let made: Vec<_> =
        items.iter().map(|item| item.template.generate(item.server.as_str(), item.name)).collect();
    let mut groups: HashMap<&str, Vec<usize>> = HashMap::new();
    for (at, made) in made.iter().enumerate() {
        groups.entry(&made.text).or_default().push(at);
    }
    let mut names: Vec<Option<String>> = Vec::with_capacity(items.len());
    for (at, made_name) in made.iter().enumerate() {
        let group = groups.get(&*made_name.text).map_or(&[][..], Vec::as_slice);
        let exact = group.iter().filter(|other| made.get(**other).is_some_and(|made| made.is_exact)).count();
        let is_free = !own.contains(&&*made_name.text);
        let keeps = is_free && (group.len() == 1 || (made_name.is_exact && exact == 1));
        names.push(match items.get(at) {
            Some(_) if keeps => Some(made_name.text.clone()),
            Some(item) => item.template.generate_with_digest(item.server.as_str(), item.name),
            None => None,
        });
    }
    drop_repeated(&mut names);
    let mut collisions: Vec<_> = groups
        .into_iter()
        .filter(|(name, group)| group.len() > 1 || own.contains(name))
        .map(|(name, group)| NameCollision {
            kind,
            name: name.to_owned(),
            owners: group.into_iter().filter_map(|at| collision_owner(items, &names, at)).collect(),
        })
        .collect();
    collisions.sort_by(|left, right| left.name.cmp(&right.name));
    (names, collisions)
}

fn collision_owner(
    items: &[NamedItem<'_>],
    names: &[Option<String>],
    at: usize,
) -> Option<(ServerName, String, Option<String>)> {
    let item = items.get(at)?;
    Some((item.server.clone(), item.name.to_owned(), names.get(at).cloned().flatten()))
}

/// Drops the names that are still not unique.
fn drop_repeated(names: &mut [Option<String>]) {
    let mut counts: HashMap<String, usize> = HashMap::new();
    for name in names.iter().flatten() {
        *counts.entry(name.clone()).or_default() += 1;
    }
    for slot in names {
        if slot.as_ref().is_some_and(|name| counts.get(name).is_some_and(|count| *count > 1)) {
            *slot = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn assigned(
        template: &NameTemplate,
        items: &[(&str, &str)],
    ) -> (Vec<Option<String>>, Vec<NameCollision>) {
        let servers: Vec<_> = items.iter().map(|(server, _)| ServerName::parse(server).unwrap()).collect();
        let named = servers.iter().zip(items);
        let items: Vec<_> = named.map(|(server, (_, name))| NamedItem { template, server, name }).collect();
        assign(ItemKind::Tool, &items, &[])
    }

    #[test]
    fn colliding_names_get_digests_and_the_collision_is_reported() {
        let (names, collisions) = assigned(&NameTemplate::hub(), &[("a", "b__c"), ("a__b", "c"), ("a", "d")]);
        let names: Vec<_> = names.into_iter().map(Option::unwrap).collect();
        assert!(names[0].starts_with("a__b__c_") && names[1].starts_with("a__b__c_"), "{names:?}");
        assert_ne!(names[0], names[1]);
        assert_eq!(names[2], "a__d");
        let [collision] = &collisions[..] else { panic!("{collisions:?}") };
        assert_eq!(collision.name, "a__b__c");
        let sentence = collision.to_string();
        assert!(sentence.contains("`b__c` of `a`") && sentence.contains("`c` of `a__b`"), "{sentence}");
    }

    #[test]
    fn exact_name_wins_over_a_sanitized_one() {
        let (names, collisions) = assigned(&NameTemplate::hub(), &[("a", "x.y"), ("a", "x_y")]);
        assert_eq!(names[1].as_deref(), Some("a__x_y"));
        assert!(names[0].as_deref().is_some_and(|name| name.starts_with("a__x_y_")), "{names:?}");
        assert_eq!(collisions.len(), 1);
        let sentence = collisions[0].to_string();
        assert!(
            sentence.starts_with("`a` has several tools that map to `a__x_y`; `x.y` of `a` is "),
            "{sentence}"
        );
    }

    #[test]
    fn duplicate_verbatim_names_are_left_out() {
        let (names, collisions) = assigned(&NameTemplate::verbatim(), &[("a", "x"), ("b", "x"), ("b", "y")]);
        assert_eq!(names, [None, None, Some("y".to_owned())]);
        assert_eq!(collisions[0].owners.len(), 2);
        assert_eq!(collisions[0].to_string(), "`a` and `b` both have a tool `x`; neither is exposed");
    }

    #[test]
    fn names_do_not_depend_on_the_order_of_servers() {
        let items = [("a", "b__c"), ("a__b", "c"), ("x y", "t"), ("x_y", "t"), ("x.y", "t")];
        let (forward, _) = assigned(&NameTemplate::agent(), &items);
        let mut reversed = items;
        reversed.reverse();
        let (mut backward, _) = assigned(&NameTemplate::agent(), &reversed);
        backward.reverse();
        assert_eq!(forward, backward);
    }

    proptest! {
        #[test]
        fn public_names_are_injective(
            items in prop::collection::hash_set(("[a_. é-]{1,5}|s{60,64}", "[b_. é-]{0,6}|t{50,90}"), 1..40)
        ) {
            let items: Vec<(String, String)> = items
                .into_iter()
                .filter(|(server, _)| ServerName::parse(server).is_ok())
                .collect();
            let borrowed: Vec<_> = items.iter().map(|(server, item)| (&**server, &**item)).collect();
            for template in [NameTemplate::hub(), NameTemplate::agent()] {
                let (names, collisions) = assigned(&template, &borrowed);
                let named: Vec<_> = names.iter().flatten().collect();
                let distinct: std::collections::HashSet<_> = named.iter().collect();
                prop_assert_eq!(distinct.len(), named.len());
                for name in &named {
                    prop_assert!((1..=64).contains(&name.len()));
                    prop_assert!(name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-'));
                }
                // Every item without a name is reported in a collision.
                for (at, name) in names.iter().enumerate() {
                    let reported = collisions.iter().flat_map(|collision| &collision.owners);
                    let mut reported = reported.map(|(server, item, _)| (server.as_str(), item.as_str()));
                    prop_assert!(name.is_some() || reported.any(|owner| owner == borrowed[at]));
                }
            }
        }
    }
}
