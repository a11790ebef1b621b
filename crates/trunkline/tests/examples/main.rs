//! The examples do what they say.

#[cfg(test)]
mod caller;

#[cfg(test)]
#[allow(dead_code, reason = "its `main` is for those who run it")]
#[path = "../../../../examples/api_key.rs"]
mod api_key;
#[cfg(test)]
#[allow(dead_code, reason = "its `main` is for those who run it")]
#[path = "../../../../examples/client.rs"]
mod client;
#[cfg(test)]
#[allow(dead_code, reason = "its `main` is for those who run it")]
#[path = "../../../../examples/read_file.rs"]
mod read_file;
#[cfg(test)]
#[allow(dead_code, reason = "its `main` is for those who run it")]
#[path = "../../../../examples/sampling.rs"]
mod sampling;
#[cfg(test)]
#[allow(dead_code, reason = "its `main` is for those who run it")]
#[path = "../../../../examples/workspace_analyzer.rs"]
mod workspace_analyzer;

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use serde_json::{Value, json};

    use crate::caller::Caller;
    use crate::{api_key, client, read_file, sampling, workspace_analyzer};

    const KEY: &str = "sk-sentinel-0123456789";

    #[tokio::test]
    async fn the_workspace_analyzer_says_what_is_known_of_the_caller() {
        let host = workspace_analyzer::server().host(workspace_analyzer::options()).unwrap();
        let roots = json!([{ "uri": "file:///workspace/project1" }, { "uri": "file:///workspace/project2" }]);
        let arguments = json!({ "analysis_type": "quick" });
        for (variable, sampling) in [(None, false), (Some(("x-env-openai_api_key", KEY)), true)] {
            let capabilities =
                if sampling { json!({ "roots": {}, "sampling": {} }) } else { json!({ "roots": {} }) };
            for mut caller in Caller::both(&host, capabilities, variable).await {
                let answer = caller.call("workspace_analyzer", &arguments, &json!({ "roots": roots })).await;
                let report = &answer["result"]["structuredContent"];
                assert_eq!(report["has_openai_access"], variable.is_some(), "{answer}");
                assert_eq!(report["has_github_access"], false);
                assert_eq!(report["supports_sampling"], sampling);
                assert_eq!(report["primary_workspace"], "file:///workspace/project1");
                assert_eq!(report["all_workspaces"].as_array().unwrap().len(), 2);
                assert_eq!(report["deep_analysis"], false);
                assert_eq!(report["protocol_version"], caller.revision());
                assert!(!answer.to_string().contains(KEY));
            }
        }
        for mut caller in Caller::both(&host, json!({}), None).await {
            let answer = caller.call("workspace_analyzer", &arguments, &Value::Null).await;
            assert_eq!(answer["result"]["structuredContent"]["all_workspaces"], json!([]), "{answer}");
        }
    }

    fn folder() -> PathBuf {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("read-file-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("inside")).unwrap();
        folder.canonicalize().unwrap()
    }

    #[tokio::test]
    async fn read_file_reads_within_the_roots_in_the_encoding_of_the_environment() {
        let folder = folder();
        let utf16: Vec<u8> = "\u{feff}Grüße".encode_utf16().flat_map(u16::to_le_bytes).collect();
        std::fs::write(folder.join("inside/utf16"), &utf16).unwrap();
        std::fs::write(folder.join("inside/utf8"), "Grüße").unwrap();
        std::fs::write(folder.join("secret"), "outside").unwrap();
        let _ = std::fs::remove_file(folder.join("inside/link"));
        std::os::unix::fs::symlink(folder.join("secret"), folder.join("inside/link")).unwrap();
        let roots = json!({ "roots": [{ "uri": format!("file://{}/inside", folder.display()) }] });
        let host = read_file::server().host(read_file::options()).unwrap();
        let encoded = Some(("x-env-file-encoding", "utf-16le"));
        for (variable, path, expected) in [
            (None, "inside/utf8", Ok("Grüße")),
            (encoded, "inside/utf16", Ok("Grüße")),
            (None, "inside/utf16", Err("invalid utf-8")),
            (Some(("x-env-file-encoding", "ebcdic")), "inside/utf8", Err("FILE_ENCODING")),
            (None, "secret", Err("outside of what may be read")),
            (None, "inside/../secret", Err("outside of what may be read")),
            (None, "inside/link", Err("outside of what may be read")),
            (None, "inside/none", Err("cannot be read")),
        ] {
            for mut caller in Caller::both(&host, json!({ "roots": {} }), variable).await {
                let arguments = json!({ "path": folder.join(path) });
                let answer = caller.call("read_file", &arguments, &roots).await;
                match expected {
                    Ok(content) => {
                        assert_eq!(answer["result"]["structuredContent"]["content"], content, "{answer}");
                    }
                    Err(part) => {
                        assert_eq!(answer["result"]["isError"], true, "{path}: {answer}");
                        assert!(answer.to_string().contains(part), "{path}: {answer}");
                    }
                }
            }
        }
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[tokio::test]
    async fn the_key_of_the_caller_is_used_and_never_seen() {
        let host = api_key::server().host(api_key::options()).unwrap();
        for (variable, fails, part) in
            [(None, true, "API_KEY not set"), (Some(("x-env-api-key", KEY)), false, "bytes")]
        {
            for mut caller in Caller::both(&host, json!({}), variable).await {
                // Whoever calls may know the key, and even then it is not repeated to the model.
                let arguments = json!({ "prompt": format!("hello {KEY}") });
                let answer = caller.call("ask_service", &arguments, &Value::Null).await;
                assert_eq!(answer["result"]["isError"] == true, fails, "{answer}");
                assert!(answer.to_string().contains(part), "{answer}");
                assert!(!answer.to_string().contains(KEY), "{answer}");
            }
        }
    }

    #[tokio::test]
    async fn the_client_of_four_lines_says_what_the_server_says() {
        use trunkline::prelude::*;

        /// Says what it is told.
        #[tool]
        async fn echo(message: String) -> String {
            message
        }

        assert_eq!(client::say_hi(Server::new("echo").with(echo)).await.unwrap(), "hi");
        let nowhere = client::say_hi("/nowhere/to/be/found").await.unwrap_err();
        assert!(nowhere.to_string().contains("/nowhere/to/be/found"), "{nowhere}");
    }

    #[tokio::test]
    async fn the_sampling_tool_says_what_the_model_of_its_caller_said() {
        let host = sampling::server().host(sampling::options()).unwrap();
        let said = json!({
            "role": "assistant", "model": "small", "content": { "type": "text", "text": "It is short." },
        });
        for mut caller in Caller::both(&host, json!({ "sampling": {} }), None).await {
            let answer = caller.call("summarize", &json!({ "text": "long" }), &said).await;
            assert_eq!(answer["result"]["content"][0]["text"], "It is short. (by small)", "{answer}");
        }
        for mut caller in Caller::both(&host, json!({}), None).await {
            let answer = caller.call("summarize", &json!({ "text": "long" }), &said).await;
            assert!(answer["error"]["message"].as_str().unwrap().contains("sampling"), "{answer}");
        }
    }
}
