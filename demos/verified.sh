#!/bin/sh
# The eight steps of a session by hand, with nothing but curl and jq, and every answer compared to what it has to be.
#
#   demos/verified.sh DEPOT      where DEPOT is the example program, `target/debug/examples/depot`
set -eu
depot=$1
folder=$(mktemp -d)
trap 'kill $store $server 2>/dev/null || true; rm -rf "$folder"' EXIT
cd "$folder"
mkdir -p .git examples
printf 'components: []\n' >examples/golem.yaml

step() { printf '\n%s\n' "$1"; }
must() { # what there is, what there has to be, what it is about
    if [ "$1" != "$2" ]; then
        printf 'FAILED: %s\n  there is: %s\n  wanted:   %s\n' "$3" "$1" "$2" >&2
        exit 1
    fi
    printf '  ok: %s\n' "$3"
}
wait_for() { # a file that appears when something is ready
    for _ in $(seq 200); do
        [ -s "$1" ] && return
        sleep 0.05
    done
    echo "FAILED: $1 did not appear" >&2
    exit 1
}
post() { # a message, to which the answer comes as one event
    curl -sS --max-time 20 -D headers -H 'Content-Type: application/json' \
        -H 'Accept: application/json, text/event-stream' ${session:+-H "mcp-session-id: $session"} \
        -d "$1" "http://$address/mcp" >answer
    sed -n 's/^data: //p' answer >message
}

step '1. Start the store and the server'
"$depot" store 0 >store &
store=$!
wait_for store
"$depot" --service "http://$(cat store)" --serve=0 --serve-port-file port --serve-golem-errors 2>log &
server=$!
wait_for port
address=$(cat port)
must "$(grep -c "MCP server on http://$address/mcp" log)" 1 'the server says where it is'

step '2. Initialize'
session=
post '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2024-11-05","capabilities":{},"clientInfo":{"name":"demo","version":"1.0"}}}'
session=$(sed -n 's/^[Mm]cp-[Ss]ession-[Ii]d: *//p' headers | tr -d '\r')
must "$(jq -r .result.protocolVersion message)" 2024-11-05 'the revision that was asked for'
must "$(jq -c '[.result.capabilities|has("tools"),has("resources")]' message)" '[true,true]' 'tools and resources'
must "$(printf %s "$session" | wc -c | tr -d ' ')" 32 'a session of 128 random bits'

step '3. Initialized'
post '{"jsonrpc":"2.0","method":"notifications/initialized"}'
must "$(head -n 1 headers | cut -d' ' -f2)" 202 'accepted'
must "$(wc -c <answer | tr -d ' ')" 0 'without a body'

step '4. List the tools'
post '{"jsonrpc":"2.0","id":2,"method":"tools/list"}'
must "$(jq '.result.tools|length >= 70' message)" true "$(jq '.result.tools|length' message) tools"
must "$(jq -c '[.result.tools[]|select(.name=="component_list")|has("description"),has("inputSchema")]' message)" '[true,true]' 'each with a description and a schema'
must "$(jq '[.result.tools[].name|select(test("token|grant|profile"))]|length' message)" 0 'none that is sensitive'

step '5. Call --version'
post '{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"--version","arguments":{}}}'
must "$(jq -r '.result.content[0].text' message)" "$("$depot" --version)" 'what the program itself says'
must "$(jq '.result.isError' message)" false 'no error'
must "$(jq .id message)" 3 'the id of the request'

step '6. Call component list'
post '{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"component_add","arguments":{"component_name":"cart","field":["version=7"]}}}'
post '{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"component list","arguments":{"component_name":""}}}'
must "$(jq -j '.result.content[0].text' message | tail -n 1)" "$(printf 'cart\tversion="7"')" 'what the store has'

step '7. Resources'
post '{"jsonrpc":"2.0","id":6,"method":"resources/list"}'
must "$(jq -r '.result.resources[0].name' message)" examples/golem.yaml 'the manifest'
uri=$(jq -r '.result.resources[0].uri' message)
post "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"resources/read\",\"params\":{\"uri\":\"$uri\"}}"
must "$(jq -r '.result.contents[0].text' message)" "$(cat examples/golem.yaml)" 'its content'

step '8. A command that is hidden'
post '{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"cloud token","arguments":{}}}'
must "$(jq -c '[.result.isError,.result.content[0].text]' message)" "[true,\"Error: Tool 'cloud token' not found\"]" 'is not there'
must "$(grep -c 'refused.*deny cloud token' log)" 1 'and the log says which rule it was'

step 'The same in the modern era: no handshake, no session'
session=
curl -sS --max-time 20 -H 'Content-Type: application/json' -H 'Accept: application/json, text/event-stream' \
    -H 'MCP-Protocol-Version: 2026-07-28' -H 'Mcp-Method: tools/call' -H 'Mcp-Name: version' \
    -d '{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"version","arguments":{},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"demo","version":"1.0"},"io.modelcontextprotocol/clientCapabilities":{}}}}' \
    "http://$address/mcp" | sed -n 's/^data: //p' >message
must "$(jq -r '.result.content[0].text' message)" "$("$depot" --version)" 'what the program itself says'

printf '\nall of it is as it should be\n'
