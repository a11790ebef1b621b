//! The output of a script or a program for its checks: `ok NAME`, `not ok NAME: why`, `skip NAME: why`.

use super::cell::FeatureCell;
use crate::TaskResult;

/// The checks of one run.
#[derive(Debug)]
pub(super) struct CheckLog<'t> {
    checks: Vec<(&'t str, CheckResult<'t>)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CheckResult<'t> {
    Ok,
    Skipped(&'t str),
}

impl<'t> CheckLog<'t> {
    /// Reads what was printed.
    ///
    /// # Errors
    /// A check failed, or the run broke down.
    pub(super) fn read(text: &'t str) -> TaskResult<Self> {
        let mut checks = Vec::new();
        for line in text.lines() {
            if let Some(failed) = line.strip_prefix("not ok ") {
                return Err(failed.to_owned().into());
            } else if let Some(name) = line.strip_prefix("ok ") {
                checks.push((name, CheckResult::Ok));
            } else if let Some((name, why)) =
                line.strip_prefix("skip ").and_then(|line| line.split_once(": "))
            {
                checks.push((name, CheckResult::Skipped(why)));
            }
        }
        let closing = text.lines().rev().find(|line| line.ends_with(" failed"));
        match closing {
            Some(closing) if closing.ends_with(" passed, 0 failed") => Ok(Self { checks }),
            _ => {
                Err(format!("it broke down: {}", text.lines().next_back().unwrap_or("nothing was said"))
                    .into())
            }
        }
    }

    /// Returns the result of a feature: the first check that was made of each group counts, and all groups have to pass.
    ///
    /// # Errors
    /// None of a group was made.
    pub(super) fn cell(&self, groups: &[&[&str]]) -> TaskResult<FeatureCell> {
        let mut cell = FeatureCell::Pass;
        for group in groups {
            let made = group.iter().find_map(|name| self.checks.iter().find(|(known, _)| known == name));
            match made {
                None => return Err(format!("no check of {} was made", group.join(", ")).into()),
                Some((_, CheckResult::Skipped(why))) => cell = FeatureCell::Cannot((*why).to_owned()),
                Some((_, CheckResult::Ok)) => {}
            }
        }
        Ok(cell)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn feature_passes_if_a_check_of_each_group_passed() {
        let text = "ok a\nok b\nskip c: it has none\n2 passed, 0 failed\n";
        let log = CheckLog::read(text).unwrap();
        assert_eq!(log.cell(&[&["a"], &["x", "b"]]).unwrap(), FeatureCell::Pass);
        assert_eq!(log.cell(&[&["a"], &["c"]]).unwrap(), FeatureCell::Cannot("it has none".to_owned()));
        assert!(log.cell(&[&["a"], &["x"]]).is_err());
    }

    #[test]
    fn failed_or_unfinished_run_is_an_error() {
        for text in
            ["ok a\nnot ok b: why\n1 passed, 1 failed\n", "ok a\nTraceback\n", "", "0 passed, 2 failed"]
        {
            assert!(CheckLog::read(text).is_err(), "{text}");
        }
    }
}
