use std::collections::{BTreeMap, BTreeSet};

/// The longest name that all model APIs accept.
const MAX_NAME_LENGTH: usize = 64;

/// The number of hexadecimal digits that distinguish colliding names.
const HASH_DIGITS: usize = 6;

/// Creates a unique valid name for each path of words.
///
/// The words are joined by `_`. If two paths collide, or a name is too long, it ends in a part of the path's hash,
/// so that a name depends only on its own path and on whether it collides.
pub(crate) fn unique_names<'p>(paths: impl Iterator<Item = &'p [String]> + Clone) -> Vec<String> {
    let mut plain: BTreeMap<String, usize> = BTreeMap::new();
    for path in paths.clone() {
        *plain.entry(sanitize(&path.join("_"))).or_default() += 1;
    }
    let taken: BTreeSet<&str> =
        plain.iter().filter(|(_, times)| **times == 1).map(|(name, _)| name.as_str()).collect();
    let mut assigned = BTreeSet::new();
    paths
        .map(|path| {
            let name = sanitize(&path.join("_"));
            let alone = plain.get(&name) == Some(&1) && name.len() <= MAX_NAME_LENGTH;
            let name = if alone {
                name
            } else {
                name_with_hash(path, &name, |name| taken.contains(name) || assigned.contains(name))
            };
            assigned.insert(name.clone());
            name
        })
        .collect()
}

/// Replaces characters that are invalid in a name.
pub(crate) fn sanitize(text: &str) -> String {
    let replaced = text.chars().map(|c| if c.is_ascii_alphanumeric() || "_-".contains(c) { c } else { '_' });
    let name: String = replaced.collect();
    let trimmed = name.trim_start_matches(['-', '_']);
    if trimmed.is_empty() { "command".to_owned() } else { trimmed.to_owned() }
}

fn name_with_hash(path: &[String], name: &str, is_taken: impl Fn(&str) -> bool) -> String {
    let hash = fnv(path);
    let made = (0_u64..).map(|turn| {
        let digits = format!("{:016x}", hash.wrapping_add(turn));
        let tail: String = digits.chars().skip(16 - HASH_DIGITS).collect();
        let head: String = name.chars().take(MAX_NAME_LENGTH - HASH_DIGITS - 1).collect();
        format!("{head}_{tail}")
    });
    // One of the sixteen million suffixes is free.
    made.into_iter().find(|name| !is_taken(name)).unwrap_or_default()
}

/// Hashes a path with FNV-1a, the same on every machine, with a separator between its words.
fn fnv(path: &[String]) -> u64 {
    let bytes = path.iter().flat_map(|word| word.bytes().chain([0]));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(paths: &[&str]) -> Vec<String> {
        let paths: Vec<Vec<String>> =
            paths.iter().map(|path| path.split(' ').map(str::to_owned).collect()).collect();
        unique_names(paths.iter().map(Vec::as_slice))
    }

    #[test]
    fn tool_name_joins_the_words_of_the_path() {
        assert_eq!(
            named(&["component list", "api-key_new list", "--version", "größe.x"]),
            ["component_list", "api-key_new_list", "version", "gr__e_x"]
        );
    }

    #[test]
    fn colliding_or_long_tool_names_end_in_a_hash() {
        let long = "a".repeat(80);
        let names = named(&["a b_c", "a_b c", &long, "x y"]);
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), 4, "{names:?}");
        assert!(names.iter().all(|name| name.len() <= MAX_NAME_LENGTH), "{names:?}");
        assert!(names[0].starts_with("a_b_c_") && names[1].starts_with("a_b_c_"), "{names:?}");
        assert_eq!(names[3], "x_y");
        let reversed = named(&["x y", &long, "a_b c", "a b_c"]);
        assert_eq!(reversed.iter().rev().collect::<Vec<_>>(), names.iter().collect::<Vec<_>>());
    }
}
