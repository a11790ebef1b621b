//! Items and results of other servers, read so that a malformed member costs as little as possible.
//!
//! Official clients validate a result as a whole: one tool with a malformed schema, or one resource with a malformed date,
//! and they reject the list with everything that other servers have on it. So what is passed on is read by these tables
//! first. A member with one obvious meaning is replaced by what it means, an optional member without one is dropped, and an
//! item whose essential members are malformed is an error, for that item alone.
//!
//! What is accepted here is what the schemas of all revisions accept, and beyond them what the official clients check:
//! dates, addresses, and output schemas that are compiled as soon as they are listed.
//!
//! # Invariants
//!
//! - An item is valid after repair, or it is left out: `whatever_is_changed_in_an_item_it_is_valid_or_left_out`.
//! - A result is valid after repair, or it is rejected: `whatever_is_changed_in_a_result_it_is_valid_or_refused`.
//! - A malformed item does not affect the other items of its list:
//!   `a_malformed_item_costs_no_more_than_itself_in_any_revision`.

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

/// An item, and what was changed in it.
#[derive(Clone, Debug, PartialEq)]
pub struct RepairedModel<T> {
    /// The item, as it can be passed on to clients of every revision.
    pub item: T,
    /// What was malformed in it, and was replaced or dropped.
    pub repairs: RepairLog,
}

/// What was malformed in something that could be repaired.
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

    /// Returns how many members were malformed.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Notes a member that was malformed.
    fn note(&mut self, problem: MalformedModel) {
        self.count += 1;
        if self.first.len() < MAX_DESCRIBED {
            self.first.push(problem);
        }
    }

    /// Says of the repairs that are noted meanwhile that they are within a member.
    fn within<T>(
        &mut self,
        place: impl Fn(MalformedModel) -> MalformedModel,
        repair: impl FnOnce(&mut Self) -> T,
    ) -> T {
        let before = self.first.len();
        let done = repair(self);
        for problem in self.first.iter_mut().skip(before) {
            *problem = place(problem.clone());
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

/// What a check says of a value: nothing to change, what it is replaced by, or why it cannot be used.
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
