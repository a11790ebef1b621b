//! The examples work as their documentation describes.

#[cfg(test)]
mod caller;

#[cfg(test)]
#[allow(dead_code, reason = "its `main` is for those who run it")]
#[path = "../../../../examples/api_key.rs"]
mod api_key;
#[cfg(test)]
#[allow(dead_code, reason = "its `main` is for those who run it")]
#[path = "../../../../examples/book.rs"]
mod book;
#[cfg(test)]
#[allow(dead_code, reason = "its `main` is for those who run it")]
#[path = "../../../../examples/client.rs"]
mod client;
#[cfg(test)]
#[allow(dead_code, reason = "its `main` is for those who run it")]
#[path = "../../../../examples/demo.rs"]
mod demo;
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
#[path = "../../../../examples/sampling_tools.rs"]
mod sampling_tools;
#[cfg(test)]
#[allow(dead_code, reason = "its `main` is for those who run it")]
#[path = "../../../../examples/voice.rs"]
mod voice;
#[cfg(test)]
#[allow(dead_code, reason = "its `main` is for those who run it")]
#[path = "../../../../examples/workspace_analyzer.rs"]
mod workspace_analyzer;

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use serde_json::{Value, json};

    use crate::caller::Caller;
    use crate::{
        api_key, book, client, demo, read_file, sampling, sampling_tools, voice, workspace_analyzer,
    };

    const KEY: &str = "sk-sentinel-0123456789";

    #[tokio::test]
    async fn workspace_analyzer_reports_the_caller() {
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
    async fn read_file_reads_within_its_folder_in_the_encoding_of_the_environment() {
        let folder = folder();
        let utf16: Vec<u8> = "\u{feff}Grüße".encode_utf16().flat_map(u16::to_le_bytes).collect();
        std::fs::write(folder.join("inside/utf16"), &utf16).unwrap();
        std::fs::write(folder.join("inside/utf8"), "Grüße").unwrap();
        std::fs::write(folder.join("secret"), "outside").unwrap();
        let _ = std::fs::remove_file(folder.join("inside/link"));
        std::os::unix::fs::symlink(folder.join("secret"), folder.join("inside/link")).unwrap();
        let roots = json!({ "roots": [{ "uri": format!("file://{}/inside", folder.display()) }] });
        let host = read_file::server(folder.join("inside")).host(read_file::options()).unwrap();
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
        // The folder of the operator counts, and not what a client calls its root; nor does a client need one.
        let everything = json!({ "roots": [{ "uri": "file:///" }] });
        for (capabilities, path, expected) in [
            (json!({ "roots": {} }), "/etc/passwd".into(), None),
            (json!({ "roots": {} }), folder.join("secret"), None),
            (json!({ "roots": {} }), folder.join("inside/utf8"), Some("Grüße")),
            (json!({}), "/etc/passwd".into(), None),
            (json!({}), folder.join("inside/utf8"), Some("Grüße")),
            (json!({}), "utf8".into(), Some("Grüße")),
        ] {
            for mut caller in Caller::both(&host, capabilities.clone(), None).await {
                let answer = caller.call("read_file", &json!({ "path": path }), &everything).await;
                let content = &answer["result"]["structuredContent"]["content"];
                assert_eq!(content.as_str(), expected, "{path:?}: {answer}");
                let refused = answer.to_string().contains("outside of what may be read");
                assert_eq!(refused, expected.is_none(), "{path:?}: {answer}");
            }
        }
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[tokio::test]
    async fn caller_key_is_used_and_never_repeated() {
        let host = api_key::server().host(api_key::options()).unwrap();
        for (variable, fails, part) in
            [(None, true, "API_KEY not set"), (Some(("x-env-api-key", KEY)), false, "bytes")]
        {
            for mut caller in Caller::both(&host, json!({}), variable).await {
                // The caller may know the key, and even then it is not repeated to the model.
                let arguments = json!({ "prompt": format!("hello {KEY}") });
                let answer = caller.call("ask_service", &arguments, &Value::Null).await;
                assert_eq!(answer["result"]["isError"] == true, fails, "{answer}");
                assert!(answer.to_string().contains(part), "{answer}");
                assert!(!answer.to_string().contains(KEY), "{answer}");
            }
        }
    }

    #[tokio::test]
    async fn smallest_readme_server_adds() {
        // The examples are built with the tests, beside them.
        let tests = std::env::current_exe().unwrap();
        let example = tests.ancestors().nth(2).unwrap().join("examples").join("tool");
        let client = trunkline::Client::connect(example.to_str().unwrap()).await.unwrap();
        assert_eq!(client.call("add", json!({ "a": 2, "b": 3 })).await.unwrap().text(), "5");
    }

    #[tokio::test]
    async fn guide_demo_serves_tool_prompt_and_resource() {
        let client = trunkline::Client::connect(demo::server()).await.unwrap();
        assert_eq!(client.server().identity.as_ref().unwrap().version, env!("CARGO_PKG_VERSION"));
        assert_eq!(client.call("add", json!({ "a": 2, "b": 3 })).await.unwrap().text(), "5");
        let prompt = client.get_prompt("greeting", json!({ "name": "Ann" })).await.unwrap();
        assert!(format!("{prompt:?}").contains("Say hello to Ann."), "{prompt:?}");
        let about = client.read("demo://about").await.unwrap();
        assert!(format!("{about:?}").contains("Three parts of five lines each."), "{about:?}");
    }

    #[tokio::test]
    async fn guide_booking_elicits_before_booking() {
        let host = book::server().host(trunkline::HostOptions::default()).unwrap();
        for (seat, booked) in [("Window", "at the window"), ("Aisle", "on the aisle")] {
            for mut caller in Caller::both(&host, json!({ "elicitation": {} }), None).await {
                let said = json!({ "action": "accept", "content": { "choice": seat } });
                let answer = caller.call("book", &json!({ "day": "Monday" }), &said).await;
                let text = answer["result"]["content"][0]["text"].as_str().unwrap_or_default();
                assert_eq!(text, format!("Booked for Monday, {booked}."), "{answer}");
            }
        }
    }

    #[tokio::test]
    async fn client_example_returns_the_server_text() {
        use trunkline::prelude::*;

        /// Returns its argument.
        #[tool]
        async fn echo(message: String) -> String {
            message
        }

        assert_eq!(client::say_hi(Server::new("echo").with(echo)).await.unwrap(), "hi");
        let nowhere = client::say_hi("/nowhere/to/be/found").await.unwrap_err();
        assert!(nowhere.to_string().contains("/nowhere/to/be/found"), "{nowhere}");
    }

    #[tokio::test]
    async fn voice_example_falls_back_to_text() {
        use trunkline::transport::Channel as _;

        let host = voice::server().host(trunkline::HostOptions::default()).unwrap();
        for (revision, kind) in [("2024-11-05", "text"), ("2025-03-26", "audio"), ("2025-11-25", "audio")] {
            let mut channel = host.connect();
            let client = json!({ "name": "test", "version": "1" });
            let hello = json!({ "protocolVersion": revision, "capabilities": {}, "clientInfo": client });
            let mut answer = Value::Null;
            for (method, params) in [("initialize", hello), ("tools/call", json!({ "name": "note" }))] {
                channel.send(
                    &json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string(),
                );
                let message = std::future::poll_fn(|cx| {
                    let _ = channel.poll_flush(cx);
                    channel.poll_receive(cx)
                });
                answer = serde_json::from_slice(&message.await.unwrap().unwrap()).unwrap();
            }
            assert_eq!(answer["result"]["content"][0]["type"], kind, "{revision}: {answer}");
        }
    }

    #[tokio::test]
    async fn sampling_loop_ends_with_an_answer() {
        let host = sampling_tools::server().host(sampling_tools::options()).unwrap();
        let wish = |id: &str, item: &str| json!({ "type": "tool_use", "id": id, "name": "price", "input": { "item": item } });
        let said = |content: Value, stop: &str| json!({ "role": "assistant", "model": "small", "content": content, "stopReason": stop });
        // The model calls the tool three times in one message, and uses the results in the next.
        let model = |question: &Value| {
            let messages = question["messages"].as_array().unwrap();
            assert_eq!(question["tools"][0]["name"], "price");
            match messages.as_slice() {
                [_] => said(json!([wish("1", "apple"), wish("2", "pear"), wish("3", "moon")]), "toolUse"),
                [_, wishes, results] => {
                    assert_eq!(wishes["content"][2]["input"]["item"], "moon");
                    let told = |result: &Value| {
                        format!(
                            "{} {} {}",
                            result["toolUseId"], result["content"][0]["text"], result["isError"]
                        )
                    };
                    let told: Vec<String> = results["content"].as_array().unwrap().iter().map(told).collect();
                    assert_eq!(results["role"], "user");
                    said(json!({ "type": "text", "text": told.join(", ") }), "endTurn")
                }
                other => panic!("{other:?}"),
            }
        };
        for mut caller in Caller::both(&host, json!({ "sampling": { "tools": {} } }), None).await {
            let answer = caller.call_with("estimate", &json!({ "wishes": "fruit" }), &model).await;
            let expected = r#""1" "3" null, "2" "4" null, "3" "there is no such item" true"#;
            assert_eq!(answer["result"]["content"][0]["text"], expected, "{answer}");
            let restless = |_: &Value| said(json!([wish("1", "apple")]), "toolUse");
            let answer = caller.call_with("estimate", &json!({ "wishes": "fruit" }), &restless).await;
            assert_eq!(answer["result"]["isError"], true, "{answer}");
        }
        for mut caller in Caller::both(&host, json!({ "sampling": {} }), None).await {
            let answer = caller.call_with("estimate", &json!({ "wishes": "fruit" }), &model).await;
            assert!(refusal(&answer).contains("sampling"), "{answer}");
        }
    }

    /// Returns why a tool was not run: in the legacy era a result for the model, in the modern one an error.
    fn refusal(answer: &Value) -> &str {
        let told = answer["result"]["content"][0]["text"].as_str();
        told.or(answer["error"]["message"].as_str()).unwrap()
    }

    #[tokio::test]
    async fn sampling_tool_returns_the_model_reply() {
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
            assert!(refusal(&answer).contains("sampling"), "{answer}");
        }
    }
}
