#!/bin/sh
# A program, the store behind it and a client: things are added, listed, renamed and deleted through the tools alone.
#
#   demos/full.sh DEPOT      where DEPOT is the example program, `target/debug/examples/depot`
set -eu
depot=$1
folder=$(mktemp -d)
trap 'kill $store $server 2>/dev/null || true; rm -rf "$folder"' EXIT
cd "$folder"

wait_for() {
    for _ in $(seq 200); do
        [ -s "$1" ] && return
        sleep 0.05
    done
    echo "FAILED: $1 did not appear" >&2
    exit 1
}
"$depot" store 0 >store &
store=$!
wait_for store
"$depot" --service "http://$(cat store)" --serve --serve-port 0 --serve-port-file port 2>log &
server=$!
wait_for port

number=0
call() { # tool, arguments: the text of the answer
    number=$((number + 1))
    curl -sS --max-time 20 -H 'Content-Type: application/json' -H 'Accept: application/json, text/event-stream' \
        -H 'MCP-Protocol-Version: 2026-07-28' -H 'Mcp-Method: tools/call' -H "Mcp-Name: $1" \
        -d "{\"jsonrpc\":\"2.0\",\"id\":$number,\"method\":\"tools/call\",\"params\":{\"name\":\"$1\",\"arguments\":$2,\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\",\"io.modelcontextprotocol/clientInfo\":{\"name\":\"full\",\"version\":\"1.0\"},\"io.modelcontextprotocol/clientCapabilities\":{}}}}" \
        "http://$(cat port)/mcp" | sed -n 's/^data: //p' | jq -r '.result.content[-1].text'
}
must() { # what there is, a pattern that has to be in it
    case $1 in
    *"$2"*) printf 'ok: %s\n' "$2" ;;
    *)
        printf 'FAILED: wanted "%s" in: %s\n' "$2" "$1" >&2
        exit 1
        ;;
    esac
}
must "$(call component_list '{}')" '(none)'
must "$(call component_add '{"component_name":"cart","field":["version=1"]}')" cart
must "$(call component_add '{"component_name":"--force","field":["version=2"]}')" --force
must "$(call component_list '{"limit":1}')" --force
must "$(call worker_add '{"component_name":"w1"}')" w1
must "$(call component_rename '{"component_name":"cart","new_name":"basket"}')" basket
must "$(call component_get '{"component_name":"basket"}')" basket
must "$(call component_get '{"component_name":"cart"}')" 'nothing called cart'
must "$(call cloud_project_list '{}')" '(none)'
must "$(call component_delete '{"component_name":"--force","force":true}')" --force
kill "$store"
wait "$store" 2>/dev/null || true
must "$(call component_list '{}')" 'cannot be reached'
must "$(call version '{}')" depot
echo 'the server outlived its store'
