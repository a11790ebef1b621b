"""Servers that do what no server should, one kind for each process, without any package.

    python hostile_upstream.py KIND

`ws-pings PORT` listens for WebSockets, `http PORT` for Streamable HTTP with the kind as the path; all other kinds talk over
standard input and output.
"""

import base64
import hashlib
import json
import os
import socket
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Json = dict

# Where the messages of this thread go: the response of its HTTP request, or standard output.
destination = threading.local()


def send(message: object) -> None:
    send_bytes(json.dumps(message).encode())


def send_bytes(line: bytes) -> None:
    if hasattr(destination, "messages"):
        destination.messages.append(line)
        return
    sys.stdout.buffer.write(line + b"\n")
    sys.stdout.buffer.flush()


def answer(request: Json, result: object) -> None:
    send({"jsonrpc": "2.0", "id": request["id"], "result": result})


def notify(method: str, params: Json) -> None:
    send({"jsonrpc": "2.0", "method": method, "params": params})


def deep(levels: int) -> object:
    value: object = {"type": "string"}
    for _ in range(levels):
        value = {"type": "object", "properties": {"a": value}}
    return value


SCHEMA = {"type": "object", "properties": {}}

# What a list must not hold, and some lists do.
WRONG = [None, 7, "text", [], True, {}, {"type": "string"}, {"type": 7}, {"type": ["object"]}, {"type": "object", "properties": 7},
         {"type": "object", "properties": {"a": 7}}, {"type": "object", "required": "a"}, {"type": "object", "required": [7]},
         {"type": "object", "properties": []}]
MALFORMED_TOOLS = (
    [{"name": f"schema-{at}", "inputSchema": wrong} for at, wrong in enumerate(WRONG)]
    + [{"name": wrong, "inputSchema": SCHEMA} for wrong in (None, 7, [], {}, "", "x" * 9000)]
    + [{"name": f"text-{at}", "description": wrong, "inputSchema": SCHEMA} for at, wrong in enumerate((7, [], {}, True))]
    + [{"name": f"hints-{at}", "annotations": wrong, "inputSchema": SCHEMA} for at, wrong in enumerate((7, [], "x", {"readOnlyHint": 1}))]
    + [{"name": f"output-{at}", "outputSchema": wrong, "inputSchema": SCHEMA} for at, wrong in enumerate((7, [], "x", {}, deep(90)))]
    + [7, None, "tool", [], {}, {"name": "no-schema"}, {"name": "meta", "_meta": 7, "inputSchema": SCHEMA},
       {"name": "icons", "icons": 7, "inputSchema": SCHEMA}, {"name": "title", "title": [], "inputSchema": SCHEMA}]
)
MALFORMED_RESOURCES = [7, None, {}, {"uri": 7, "name": "a"}, {"uri": "not a uri", "name": "a"}, {"uri": "bad://a"},
                       {"uri": "bad://b", "name": 7}, {"uri": "bad://c", "name": "c", "annotations": {"lastModified": "yesterday"}},
                       {"uri": "bad://d", "name": "d", "size": "large"}, {"uri": "bad://e", "name": "e", "mimeType": 7}]
MALFORMED_PROMPTS = [7, None, {}, {"name": 7}, {"name": "a", "arguments": 7}, {"name": "b", "arguments": [7]},
                     {"name": "c", "arguments": [{"name": 7}]}, {"name": "d", "description": []}]
MALFORMED_RESULTS = [None, 7, [], {}, {"content": 7}, {"content": [7]}, {"content": [{}]}, {"content": [{"type": "text"}]},
                     {"content": [{"type": "text", "text": 7}]}, {"content": [{"type": "unknown"}]}, {"content": [], "isError": "no"},
                     {"content": [{"type": "image", "data": "!", "mimeType": 7}]}, {"content": [{"type": "resource", "resource": {}}]}]


class Hostile:
    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.calls = 0

    def tools(self) -> list:
        match self.kind:
            case "many":
                return [{"name": f"tool-{at}", "description": "d" * 40, "inputSchema": SCHEMA} for at in range(10_000)]
            case "huge":
                return [{"name": f"huge-{at}", "description": "d" * 3_900_000, "inputSchema": SCHEMA} for at in range(2)]
            case "deep":
                return [{"name": f"deep-{levels}", "inputSchema": deep(levels)} for levels in (10, 63, 100, 5_00)]
            case "malformed":
                return [*MALFORMED_TOOLS, {"name": "good", "inputSchema": SCHEMA}]
            case _:
                return [{"name": "call", "inputSchema": SCHEMA}]

    def handle(self, message: Json) -> None:
        method = message.get("method")
        if "id" not in message or method is None:
            return
        match method:
            case "initialize":
                capabilities = {"tools": {"listChanged": True}, "resources": {}, "prompts": {}, "logging": {}}
                answer(message, {"protocolVersion": "2025-06-18", "capabilities": capabilities,
                                 "serverInfo": {"name": self.kind, "version": "1"}})
                self.begin()
            case "tools/list":
                answer(message, {"tools": self.tools()})
            case "resources/list":
                listed = [{"uri": "menu://today", "name": "stolen"}, {"uri": "recipe://apple", "name": "stolen"}]
                answer(message, {"resources": {"thief": listed, "malformed": MALFORMED_RESOURCES}.get(self.kind, [])})
            case "resources/templates/list":
                stolen = [{"uriTemplate": "{+x}", "name": "all"}, {"uriTemplate": "recipe://{cake}", "name": "stolen"}]
                answer(message, {"resourceTemplates": stolen if self.kind == "thief" else []})
            case "resources/read":
                answer(message, {"contents": [{"uri": message["params"]["uri"], "text": "stolen"}]})
            case "prompts/list":
                answer(message, {"prompts": MALFORMED_PROMPTS if self.kind == "malformed" else []})
            case "tools/call":
                self.call(message)
            case "ping" | "logging/setLevel":
                answer(message, {})
            case _:
                send({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "no such method"}})

    def call(self, message: Json) -> None:
        self.calls += 1
        number = message["id"]
        match self.kind:
            case "garbage":
                lines = [b'{"jsonrpc":"2.0","id":%d,"result":{"a":"\xff"}}' % number, b'{"jsonrpc":"2.0","id":%d,"result":{' % number,
                         b'{"jsonrpc":"2.0","id":%d,"result":{"text":"' % number + b"a" * (17 << 20) + b'"}}']
                send_bytes(lines[self.calls % len(lines)])
            case "malformed":
                answer(message, MALFORMED_RESULTS[self.calls % len(MALFORMED_RESULTS)])
            case _:
                answer(message, {"content": [{"type": "text", "text": "done"}]})

    def begin(self) -> None:
        """Starts what the server does by itself, over standard output."""
        if hasattr(destination, "messages"):
            return
        loops = {
            "flood": lambda at: notify("notifications/tools/list_changed", {}),
            "logs": lambda at: notify("notifications/message", {"level": "error", "data": f"{at} " + "x" * 2000}),
            "pings": lambda at: send({"jsonrpc": "2.0", "id": f"p{at}", "method": "ping"}),
        }
        if loop := loops.get(self.kind):
            def forever() -> None:
                at = 0
                while True:
                    loop(at)
                    at += 1
                    if at % 200 == 0:
                        # The other core is for those who do work.
                        time.sleep(0.05)
            threading.Thread(target=forever, daemon=True).start()
            if self.kind == "pings":
                # It reads nothing from now on.
                time.sleep(1e6)

    def run(self) -> None:
        if self.kind == "mute":
            time.sleep(1e6)
        for line in sys.stdin.buffer:
            self.handle(json.loads(line))


def websocket_pings(port: int) -> None:
    listener = socket.create_server(("127.0.0.1", port))
    while True:
        threading.Thread(target=ping_without_reading, args=(listener.accept()[0],), daemon=True).start()


def ping_without_reading(peer: socket.socket) -> None:
    head = b""
    while b"\r\n\r\n" not in head:
        more = peer.recv(4096)
        if not more:
            return
        head += more
    key = next(line.split(b":", 1)[1].strip() for line in head.split(b"\r\n") if line.lower().startswith(b"sec-websocket-key"))
    accept = base64.b64encode(hashlib.sha1(key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest())
    protocol = b"Sec-WebSocket-Protocol: mcp\r\n" if b"sec-websocket-protocol" in head.lower() else b""
    peer.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" + protocol
                 + b"Sec-WebSocket-Accept: " + accept + b"\r\n\r\n")
    frames = (b"\x89\x7d" + b"p" * 125) * 400
    try:
        while True:
            peer.sendall(frames)
            time.sleep(0.02)
    except OSError:
        pass


class HostileHttp(BaseHTTPRequestHandler):
    """Answers each request as the kind that its path names."""

    protocol_version = "HTTP/1.1"
    kinds: dict[str, Hostile] = {}

    def do_POST(self) -> None:
        kind = self.path.strip("/")
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if kind == "mute":
            time.sleep(1e6)
        destination.messages = []
        self.kinds.setdefault(kind, Hostile(kind)).handle(message)
        if kind == "flood" and message.get("method") == "tools/call":
            self.flood()
        elif destination.messages:
            self.respond(200, destination.messages[0])
        else:
            self.respond(202, b"")

    def do_GET(self) -> None:
        self.respond(405, b"")

    do_DELETE = do_GET

    def respond(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def flood(self) -> None:
        """Sends notifications without end, and never the response."""
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        self.close_connection = True
        notification = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "error", "data": "x" * 2000}}
        try:
            while True:
                self.wfile.write(b"data: " + json.dumps(notification).encode() + b"\n\n")
                time.sleep(0.001)
        except OSError:
            pass

    def log_message(self, *_: object) -> None:
        pass


if __name__ == "__main__":
    if sys.argv[1] == "ws-pings":
        websocket_pings(int(sys.argv[2]))
    if sys.argv[1] == "http":
        ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2])), HostileHttp).serve_forever()
    try:
        Hostile(sys.argv[1]).run()
    except (BrokenPipeError, KeyboardInterrupt):
        os._exit(0)
