use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::findings::Findings;
use crate::options::IsolationOptions;

/// What belongs to a client, and where anything else is recorded.
#[derive(Clone)]
pub(crate) struct OwnMessages {
    pub(crate) name: String,
    /// The folder that is its root.
    pub(crate) folder: PathBuf,
    /// Whether other clients may use the same process.
    is_shared: bool,
    pub(crate) findings: Arc<Findings>,
}

/// What a call of the tool `examine` requested.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ExpectedAnswer {
    pub(crate) asks: bool,
    pub(crate) lists_roots: bool,
}

impl OwnMessages {
    pub(crate) fn new(name: String, options: &IsolationOptions, findings: Arc<Findings>) -> Self {
        Self { folder: options.scratch.join(&name), is_shared: options.is_shared, name, findings }
    }

    /// Returns the URI of its root.
    pub(crate) fn root(&self) -> String {
        format!("file://{}", self.folder.display())
    }

    /// Checks a question, a log message or a progress notice, which begins with the name of its client.
    pub(crate) fn check(&self, kind: &str, text: &str) {
        if !text.starts_with(&format!("{}/", self.name)) {
            self.findings.record(format!("{kind} `{text}` reached {}", self.name));
        }
    }

    /// Checks what the tool `examine` returned: the answer to its question, the roots that it was sent, and the clients
    /// that its process has served.
    pub(crate) fn check_answer(&self, server: &str, answer: &Value, expected: ExpectedAnswer) {
        let crossed = |what: &str| {
            self.findings.record(format!("{what} of {server} for {}: {answer}", self.name));
        };
        if answer["answer"] != if expected.asks { &*self.name } else { "not asked" } {
            crossed("an answer");
        }
        let roots: Vec<&str> =
            answer["roots"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let own = self.root();
        let wanted = usize::from(expected.lists_roots);
        if roots.len() != wanted || roots.iter().any(|found| found.trim_end_matches('/') != own) {
            crossed("roots");
        }
        if !self.is_shared && answer["served"] != json!([self.name]) {
            crossed("state");
        }
        self.findings.answered(server, answer["process"].as_u64().unwrap_or_default());
    }

    /// Checks the folders that server-filesystem allows, one in each line behind a title.
    ///
    /// # Errors
    /// It has none yet: it has not resolved the roots of its client.
    pub(crate) fn check_folders(&self, text: &str) -> Result<(), String> {
        let own = self.folder.display().to_string();
        let folders: Vec<&str> = text.lines().skip(1).filter(|folder| !folder.is_empty()).collect();
        self.findings.listed_folders(folders.is_empty());
        if folders.is_empty() {
            return Err("the server has no folders yet".to_owned());
        }
        if folders != [own] {
            self.findings.record(format!("folders for {}: {text}", self.name));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(is_shared: bool) -> OwnMessages {
        let options = IsolationOptions { scratch: "/roots".into(), is_shared, ..IsolationOptions::default() };
        OwnMessages::new("c1".to_owned(), &options, Arc::default())
    }

    fn answer(of: &str, root: &str, served: &[&str]) -> Value {
        json!({ "answer": of, "roots": [root], "served": served, "process": 7 })
    }

    const ALL: ExpectedAnswer = ExpectedAnswer { asks: true, lists_roots: true };

    #[test]
    fn own_messages_are_no_findings() {
        let client = client(false);
        client.check("question", "c1/0");
        client.check_answer("s", &answer("c1", "file:///roots/c1/", &["c1"]), ALL);
        let nothing = json!({ "answer": "not asked", "roots": [], "served": ["c1"], "process": 7 });
        client.check_answer("s", &nothing, ExpectedAnswer::default());
        client.check_folders("Allowed directories:\n/roots/c1").unwrap();
        assert_eq!(client.findings.crossed(), Vec::<String>::new());
    }

    type CrossingAction<'a> = &'a dyn Fn(&OwnMessages);

    #[test]
    fn every_kind_of_crossing_is_a_finding() {
        let own = "file:///roots/c1";
        let crossings: [(&str, CrossingAction<'_>); 10] = [
            ("question", &|client| client.check("question", "c2/0")),
            ("progress", &|client| client.check("progress", "c11/0")),
            ("log", &|client| client.check("log", "")),
            ("answer", &|client| client.check_answer("s", &answer("c2", own, &["c1"]), ALL)),
            ("unasked", &|client| client.check_answer("s", &answer("not asked", own, &["c1"]), ALL)),
            ("roots", &|client| client.check_answer("s", &answer("c1", "file:///roots/c2", &["c1"]), ALL)),
            ("no roots", &|client| {
                let without = json!({ "answer": "c1", "roots": [], "served": ["c1"], "process": 7 });
                client.check_answer("s", &without, ALL);
            }),
            ("state", &|client| client.check_answer("s", &answer("c1", own, &["c1", "c2"]), ALL)),
            ("folders", &|client| {
                client.check_folders("Allowed directories:\n/roots/c1\n/roots/c2").unwrap();
            }),
            ("other folder", &|client| client.check_folders("Allowed directories:\n/roots/c2").unwrap()),
        ];
        for (kind, cross) in crossings {
            let client = client(false);
            cross(&client);
            assert_eq!(client.findings.crossed().len(), 1, "{kind}: {:?}", client.findings.crossed());
        }
    }

    #[test]
    fn one_user_may_share_the_state_of_a_process_and_nothing_else() {
        let client = client(true);
        client.check_answer("s", &answer("c1", "file:///roots/c1", &["c1", "c2"]), ALL);
        assert_eq!(client.findings.crossed().len(), 0);
        client.check_answer("s", &answer("c2", "file:///roots/c1", &["c1", "c2"]), ALL);
        assert_eq!(client.findings.crossed().len(), 1);
    }
}
