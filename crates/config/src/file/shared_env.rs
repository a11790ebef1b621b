use std::collections::BTreeMap;

use super::{ConfigFile, ENV_SECTION};
use crate::de;
use crate::node::ConfigNode;
use crate::problem::ConfigProblem;
use crate::text::ConfigText;

impl ConfigFile {
    /// Reads the variables of the section `[env]`, which every program gets unless it sets them itself. A value with an
    /// unset variable is a problem of the programs that get it.
    ///
    /// # Errors
    /// A value is no text or cannot be expanded, or a name or value cannot be a variable.
    pub fn shared_env(&self) -> Result<BTreeMap<String, Result<ConfigText, ConfigProblem>>, ConfigProblem> {
        let Some(section) = self.section(ENV_SECTION) else { return Ok(BTreeMap::new()) };
        let entries = self.root().get(ENV_SECTION).and_then(ConfigNode::entries).unwrap_or_default();
        let expander = self.expander();
        let mut variables = BTreeMap::new();
        for entry in entries {
            let value = match de::read::<ConfigText>(&entry.value, &expander) {
                Ok(value) => Ok(value),
                Err(fault) => {
                    let problem = self.0.problem(&fault.within(&entry.key), &[ENV_SECTION.to_owned()]);
                    let unset = expander.take_unset().ok_or_else(|| problem.clone())?;
                    Err(problem.unset(Some(unset)))
                }
            };
            let has_nul = value.as_ref().is_ok_and(|value| value.expose().contains('\0'));
            if entry.key.is_empty() || entry.key.contains(['=', '\0']) || has_nul {
                let what =
                    "the name of a variable is not empty and has no `=`, and its value has no NUL character";
                return Err(section.problem(&[&entry.key], what));
            }
            variables.insert(entry.key.clone(), value);
        }
        Ok(variables)
    }
}
