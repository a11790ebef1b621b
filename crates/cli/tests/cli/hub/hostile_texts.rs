//! Servers that send megabytes of text where a line would do.

use rustix::process::Signal;

use super::*;

/// The most bytes of anything that is logged or shown here.
const MAX_SHOWN: usize = 64 * 1024;

/// A server that answers one method with an error of 4 MiB, which is another one each time.
fn server_with_long_errors(method: &str) -> Value {
    let script = r#"
        n=0
        while IFS= read -r line; do
            n=$((n + 1))
            id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
            case "$line" in
            *'"method":"METHOD"'*)
                printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-1,"message":"evil %s ' "$id" "$n"
                head -c 4194304 /dev/zero | tr '\0' x
                printf '"}}\n' ;;
            *'"method":"initialize"'*)
                printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"evil","version":"1"}}}\n' "$id" ;;
            *'"id":'*)
                printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}\n' "$id" ;;
            *'"method":"notifications/initialized"'*)
                for _ in 1 2 3; do printf '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n'; done ;;
            esac
        done
    "#;
    json!({ "command": "sh", "args": ["-c", script.replace("METHOD", method)] })
}

#[test]
fn megabytes_in_error_messages_stay_out_of_the_log_and_the_status() {
    let servers =
        [("lists", server_with_long_errors("tools/list")), ("opens", server_with_long_errors("initialize"))];
    let place = HubFolder::new("hub_long_texts", "mcp.json", &mcp_json(&servers));
    let socket = place.socket();
    let socket = socket.to_str().unwrap();
    let (mut running, address) = place.serve(&["--admin-socket", socket]);
    assert_eq!(post(address, &modern(1, "tools/list", json!({})), &[]).status, 200);
    let logged = running.wait_for("cannot list tools");
    assert!(logged.len() < 8 * 1024 && logged.contains("evil"), "{}", logged.len());
    let ready = wait_until("the other server has failed", || {
        let ready = readiness(address).1;
        ready["servers"]["opens"]["reason"].is_string().then(|| ready.to_string())
    });
    assert!(ready.len() < MAX_SHOWN && ready.contains("evil"), "{}", ready.len());
    let shown = run_in(&["servers", "--json", "--admin-socket", socket], &place.folder);
    assert!(shown.stdout.contains("evil") && shown.stdout.len() < MAX_SHOWN, "{}", shown.stdout.len());
    running.signal(Signal::TERM);
    let finished = running.wait();
    assert_eq!(finished.code, Some(0));
    assert!(finished.stderr.len() < MAX_SHOWN, "{}", finished.stderr.len());
}
