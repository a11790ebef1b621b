use serde_json::{Map, Value};

/// Members of a result that differ from one run or revision to the next without a difference in what it says.
const VOLATILE: [&str; 5] = ["resultType", "ttlMs", "cacheScope", "nextCursor", "requestState"];

/// Paths within a result that a comparison leaves out.
#[derive(Clone, Debug, Default)]
pub(crate) struct IgnoredPaths(Vec<Vec<String>>);

impl IgnoredPaths {
    /// Reads paths such as `content.*.text`.
    pub(crate) fn new(paths: &[String]) -> Self {
        Self(paths.iter().map(|path| path.split('.').map(str::to_owned).collect()).collect())
    }

    /// Returns a result without its volatile members and the ignored ones.
    pub(crate) fn canonical(&self, result: &Value) -> Value {
        let mut result = without_meta(result);
        if let Value::Object(members) = &mut result {
            VOLATILE.iter().for_each(|name| drop(members.remove(*name)));
        }
        for path in &self.0 {
            remove(&mut result, path);
        }
        result
    }
}

/// Returns the parameters of a request in a form in which equal requests are equal.
pub(crate) fn canonical_params(params: Option<&Value>) -> Value {
    let mut params = without_meta(params.unwrap_or(&Value::Null));
    match &mut params {
        Value::Object(members) => {
            members.remove("requestState");
        }
        _ => params = Value::Object(Map::new()),
    }
    params
}

/// Copies a value without `_meta`, at any depth.
fn without_meta(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let kept = members.iter().filter(|(key, _)| *key != "_meta");
            Value::Object(kept.map(|(key, value)| (key.clone(), without_meta(value))).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(without_meta).collect()),
        other => other.clone(),
    }
}

fn remove(value: &mut Value, path: &[String]) {
    let [first, rest @ ..] = path else { return };
    match value {
        Value::Object(members) if rest.is_empty() && first == "*" => members.clear(),
        Value::Object(members) if rest.is_empty() => drop(members.remove(first)),
        Value::Object(members) if first == "*" => members.values_mut().for_each(|inner| remove(inner, rest)),
        Value::Object(members) => {
            if let Some(inner) = members.get_mut(first) {
                remove(inner, rest);
            }
        }
        Value::Array(items) if first == "*" => items.iter_mut().for_each(|item| match rest.is_empty() {
            true => *item = Value::Null,
            false => remove(item, rest),
        }),
        Value::Array(items) => {
            let at = first.parse::<usize>().ok();
            match at.and_then(|at| items.get_mut(at)) {
                Some(item) if rest.is_empty() => *item = Value::Null,
                Some(item) => remove(item, rest),
                None => {}
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn volatile_and_ignored_members_are_left_out() {
        let ignored = IgnoredPaths::new(&["content.*.text".to_owned(), "a.0".to_owned()]);
        let result = json!({
            "_meta": { "x": 1 }, "ttlMs": 1, "resultType": "complete",
            "content": [{ "type": "text", "text": "now", "_meta": {} }], "a": [1, 2],
        });
        assert_eq!(ignored.canonical(&result), json!({ "content": [{ "type": "text" }], "a": [null, 2] }));
        let params = json!({ "name": "a", "_meta": { "progressToken": 1 }, "requestState": "s" });
        assert_eq!(canonical_params(Some(&params)), json!({ "name": "a" }));
        assert_eq!(canonical_params(None), json!({}));
    }
}
