//! Repair of items and results of upstream servers, so that a malformed member does as little harm as possible.
//!
//! Official clients validate a result as a whole: one tool with a malformed schema, or one resource with a malformed date,
//! and they reject the whole list, including the items of other servers. So everything that is relayed is checked by
//! these tables first. A member with one obvious meaning is replaced, an optional member without one is dropped, and
//! an item with a malformed essential member is an error, for that item alone.
//!
//! The tables accept what the schemas of all revisions accept, and also check what the official clients check beyond
//! them: dates, URIs, and output schemas that are compiled as soon as they are listed.
//!
//! # Invariants
//!
//! - An item is valid after repair, or it is left out: `mutated_items_are_repaired_or_omitted`.
//! - A result is valid after repair, or it is rejected: `mutated_results_are_repaired_or_rejected`.
//! - A malformed item does not affect the other items of its list:
//!   `malformed_list_item_is_skipped_alone_in_every_revision`.

mod content;
mod format;
mod items;
mod object;
mod output_schema;
mod regex;
mod result;
mod schema;
mod uri;

use std::fmt;

use crate::json::{JsonScanner, RawJson, ScanError};

use super::{Implementation, MalformedModel, Prompt, Resource, ResourceTemplate, Tool};

pub(crate) use self::format::{is_date_time, is_fraction};
pub(crate) use self::result::repaired_result;

/// The deepest nesting of a listed item: with the list around it, a message stays within the 64 levels that we read.
pub const ITEM_DEPTH: usize = 60;

/// An item with its repairs.
#[derive(Clone, Debug, PartialEq)]
pub struct RepairedModel<T> {
    /// The item, valid for clients of every revision.
    pub item: T,
    /// The malformed members that were replaced or dropped.
    pub repairs: RepairLog,
}

/// A log of repairs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RepairLog {
    first: Vec<MalformedModel>,
    count: usize,
}

/// The most repairs of one item that are described.
const MAX_DESCRIBED: usize = 4;

impl RepairLog {
    /// Reports whether nothing was malformed.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns the number of malformed members.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Records a malformed member.
    fn note(&mut self, problem: MalformedModel) {
        self.count += 1;
        if self.first.len() < MAX_DESCRIBED {
            self.first.push(problem);
        }
    }

    /// Prefixes the paths of the repairs that are recorded meanwhile.
    fn within<T>(
        &mut self,
        with_path: impl Fn(MalformedModel) -> MalformedModel,
        repair: impl FnOnce(&mut Self) -> T,
    ) -> T {
        let before = self.first.len();
        let done = repair(self);
        for problem in self.first.iter_mut().skip(before) {
            *problem = with_path(problem.clone());
        }
        done
    }
}

impl fmt::Display for RepairLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, problem) in self.first.iter().enumerate() {
            let comma = if at == 0 { "" } else { ", " };
            write!(f, "{comma}{problem}")?;
        }
        match self.count - self.first.len() {
            0 => Ok(()),
            more => write!(f, ", and {more} more"),
        }
    }
}

/// The outcome of a check: no change, a replacement, or the reason why the value cannot be used.
type CheckOutcome = Result<Option<RawJson>, MalformedModel>;

/// A check of one value.
type ValueCheck = fn(&RawJson, &mut RepairLog) -> CheckOutcome;

fn malformed(problem: &'static str) -> CheckOutcome {
    Err(MalformedModel::new(problem))
}

macro_rules! repaired {
    ($($type:ty => $check:path;)*) => {
        $(impl $type {
            /// Reads the object as another server sent it, and repairs what can be.
            ///
            /// # Errors
            /// What cannot be repaired: an essential member is missing or malformed, two members have one name, or the
            /// object nests deeper than [`ITEM_DEPTH`].
            pub fn read_repaired(raw: &RawJson) -> Result<RepairedModel<Self>, MalformedModel> {
                let mut repairs = RepairLog::default();
                let readable = readable(raw, ITEM_DEPTH, &mut repairs)?;
                let raw = readable.as_ref().unwrap_or(raw);
                let repaired = $check(raw, &mut repairs)?;
                let item = Self::read(repaired.as_ref().unwrap_or(raw))?;
                Ok(RepairedModel { item, repairs })
            }
        })*
    };
}

repaired! {
    Tool => items::tool;
    Prompt => items::prompt;
    Resource => items::resource;
    ResourceTemplate => items::template;
    Implementation => items::implementation;
}

/// Checks that parsers of every language can read a value, whatever it means.
fn readable(raw: &RawJson, depth: usize, repairs: &mut RepairLog) -> CheckOutcome {
    let mut scanner = JsonScanner::new(raw.text(), depth);
    scanner.skip();
    match scanner.end() {
        Err(ScanError::TooDeep) => {
            return Err(MalformedModel::new(format!("nests deeper than {depth} levels")));
        }
        Err(ScanError::Syntax) => return malformed("is not JSON"),
        Ok(()) if !scanner.is_suspicious() => return Ok(None),
        Ok(()) => {}
    }
    let Some(readable) = raw.without_lone_surrogates() else {
        return malformed("has a number that is too large");
    };
    if readable == *raw {
        return Ok(None);
    }
    repairs.note(MalformedModel::new("has half of a surrogate pair"));
    Ok(Some(readable))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_text_is_checked_without_a_panic(text in "[a-z0-9:/@\\[\\](){}?*+.%\\\\^$|T+Z-]{0,24}|.{0,12}") {
            uri::is_uri(&text);
            regex::is_pattern(&text);
            is_date_time(&text);
            is_fraction(&text);
        }
    }
}
