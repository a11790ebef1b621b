#!/bin/sh
# Calls tools of every kind over standard input and output, and ends with 0 only if each did what it should.
#
#   demos/ci.sh DEPOT      where DEPOT is the example program, `target/debug/examples/depot`
set -eu
depot=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

call() { # id, tool, arguments
    printf '{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":"%s","arguments":%s}}\n' "$1" "$2" "$3"
}
{
    printf '%s\n' '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"ci","version":"1.0"}}}'
    printf '%s\n' '{"jsonrpc":"2.0","method":"notifications/initialized"}'
    call 1 version '{}'
    call 2 convert '{"input":"x","rest":["--version","--"],"tag":["a","-b"],"verbose":2,"color":false}'
    call 3 convert '{"input":"a","port":80}'
    call 4 debug_fail '{"code":3}'
    call 5 component_list '{}'
    call 6 profile_list '{}'
    call 7 component_list '{"profile":"admin"}'
} | "$depot" --service http://127.0.0.1:9 --serve-stdio >answers 2>log

failed=0
check() { # id, filter, what it has to give
    there=$(jq -r "select(.id==$1)|$2" answers)
    if [ "$there" = "$3" ]; then
        echo "ok $1: $3"
    else
        echo "FAILED $1: $2 gives: $there" >&2
        failed=1
    fi
}
check 1 '.result.content[0].text' "$("$depot" --version)"
check 2 '.result.content[0].text|fromjson|[.input,.rest,.tag,.verbose,.color]|tostring' '["x",["--version","--"],["a","-b"],2,false]'
check 3 '[.result.isError,(.result.content[0].text|test("port"))]|tostring' '[true,true]'
check 4 '[.result.isError,(.result.content[1].text|test("the other half failed"))]|tostring' '[true,true]'
check 5 '[.result.isError,(.result.content[0].text|test("cannot be reached"))]|tostring' '[true,true]'
check 6 '.error.message' 'Unknown tool: profile_list'
check 7 '[.result.isError,(.result.content[0].text|test("profile"))]|tostring' '[true,true]'
exit $failed
