use crate::json::{JsonKind, JsonWriter, RawJson};

use super::super::MalformedModel;
use super::{CheckOutcome, RepairLog, ValueCheck, malformed};

/// A member of an object, and its check.
pub(super) struct MemberRule {
    key: &'static str,
    check: ValueCheck,
    need: MemberNeed,
}

/// What a malformed member means for its object.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MemberNeed {
    /// It is required; without it the object is malformed too.
    Required,
    /// It may be absent; if it is malformed, so is the object.
    Essential,
    /// It may be absent, and is dropped if it is malformed.
    Optional,
}

impl MemberRule {
    /// Describes a member without which the object is malformed.
    pub(super) const fn required(key: &'static str, check: ValueCheck) -> Self {
        Self { key, check, need: MemberNeed::Required }
    }

    /// Describes a member that may be absent, and without which a malformed object would mean something else.
    pub(super) const fn essential(key: &'static str, check: ValueCheck) -> Self {
        Self { key, check, need: MemberNeed::Essential }
    }

    /// Describes a member that is dropped if it is malformed.
    pub(super) const fn optional(key: &'static str, check: ValueCheck) -> Self {
        Self { key, check, need: MemberNeed::Optional }
    }
}

/// Checks the members of an object by a table; other members are kept unchanged.
pub(super) fn object(raw: &RawJson, table: &[MemberRule], repairs: &mut RepairLog) -> CheckOutcome {
    if raw.kind() != JsonKind::Object {
        return malformed("must be an object");
    }
    let mut members = raw.members()?;
    let mut is_changed = false;
    for MemberRule { key, check, need } in table {
        let Some(value) = members.get(key).filter(|value| !value.is_null()) else {
            if *need == MemberNeed::Required {
                return Err(MalformedModel::new("is missing").within(key));
            }
            // Many peers write `null` for absent members.
            is_changed |= members.take(key).is_some();
            continue;
        };
        let checked = repairs.within(|problem| problem.within(key), |repairs| check(value, repairs));
        match checked {
            Ok(None) => {}
            Ok(Some(instead)) => {
                members.set(*key, instead);
                is_changed = true;
            }
            Err(problem) if *need == MemberNeed::Optional => {
                repairs.note(problem.within(key));
                members.take(key);
                is_changed = true;
            }
            Err(problem) => return Err(problem.within(key)),
        }
    }
    Ok(is_changed.then(|| members.to_raw()))
}

/// The treatment of a malformed element of a list.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ElementRule {
    /// The list is malformed too.
    Essential,
    /// It is dropped.
    Optional,
}

/// Checks every element of a list.
pub(super) fn list(
    raw: &RawJson,
    check: ValueCheck,
    element: ElementRule,
    repairs: &mut RepairLog,
) -> CheckOutcome {
    let Some(elements) = raw.elements().ok().filter(|_| raw.kind() == JsonKind::Array) else {
        return malformed("must be an array");
    };
    let mut is_changed = false;
    let mut kept = Vec::with_capacity(elements.len());
    for (index, value) in elements.into_iter().enumerate() {
        match repairs.within(|problem| problem.at(index), |repairs| check(&value, repairs)) {
            Ok(None) => kept.push(value),
            Ok(Some(instead)) => {
                kept.push(instead);
                is_changed = true;
            }
            Err(problem) if element == ElementRule::Optional => {
                repairs.note(problem.at(index));
                is_changed = true;
            }
            Err(problem) => return Err(problem.at(index)),
        }
    }
    Ok(is_changed.then(|| to_array(&kept)))
}

/// Writes an array.
pub(super) fn to_array(elements: &[RawJson]) -> RawJson {
    let mut writer = JsonWriter::with_capacity(64);
    writer.open_array();
    elements.iter().for_each(|element| writer.raw(element));
    writer.close_array();
    writer.into_raw()
}
