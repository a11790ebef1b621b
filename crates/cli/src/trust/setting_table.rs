use serde_json::Value;

/// A table of a file, as written and with its variables expanded.
#[derive(Clone, Copy, Debug)]
pub(super) struct SettingTable<'a> {
    pub(super) written: &'a Value,
    pub(super) expanded: &'a Value,
}

/// A text of a table, as written and with its variables expanded.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SettingText<'a> {
    pub(super) written: &'a str,
    pub(super) expanded: &'a str,
}

impl<'a> SettingTable<'a> {
    pub(super) fn text(self, key: &str) -> Option<SettingText<'a>> {
        let text = |table: &'a Value| table.get(key).and_then(Value::as_str);
        let written = text(self.written)?;
        Some(SettingText { written, expanded: text(self.expanded).unwrap_or(written) })
    }

    pub(super) fn texts(self, key: &str) -> Vec<SettingText<'a>> {
        let list = |table: &'a Value| table.get(key).and_then(Value::as_array).map(Vec::as_slice);
        let written = list(self.written).unwrap_or_default();
        let expanded = list(self.expanded).unwrap_or_default().iter().map(Value::as_str);
        let expanded = expanded.chain(std::iter::repeat(None));
        let both = written.iter().zip(expanded);
        both.filter_map(|(written, expanded)| {
            let written = written.as_str()?;
            Some(SettingText { written, expanded: expanded.unwrap_or(written) })
        })
        .collect()
    }
}
