"""Goes on with one session of the PyPI package `mcp` 1.x after the hub behind it was killed and started again."""

import json
import os
import signal
import socket
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import anyio
import report
from mcp import ClientSession
from mcp.client.streamable_http import streamablehttp_client

# A server of the hub may have to be started by the first call.
CALL_LIMIT_SECONDS = 60.0


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


async def wait_until_listening(port: int) -> None:
    with anyio.fail_after(CALL_LIMIT_SECONDS):
        while True:
            try:
                await (await anyio.connect_tcp("127.0.0.1", port)).aclose()
                return
            except OSError:
                await anyio.sleep(0.05)


class RestartedHub:
    """A hub with a session store in a file, in front of `server-everything` as a program and over HTTP."""

    def __init__(self, binary: str, everything: list[str], folder: Path) -> None:
        self.binary = binary
        self.folder = folder
        self.port = free_port()
        self.upstream_port = free_port()
        self.everything = everything
        servers = {
            "pipes": {"command": everything[0], "args": everything[1:]},
            "web": {"type": "http", "url": f"http://127.0.0.1:{self.upstream_port}/mcp"},
        }
        (folder / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
        (folder / "mcp.json").chmod(0o600)
        (folder / "state.key").write_bytes(os.urandom(32))
        (folder / "state.key").chmod(0o600)

    def start_upstream(self) -> subprocess.Popen[bytes]:
        log = (self.folder / "upstream.log").open("wb")
        environment = os.environ | {"PORT": str(self.upstream_port)}
        return subprocess.Popen([*self.everything, "streamableHttp"], env=environment, stdout=log, stderr=log)

    def start(self) -> subprocess.Popen[bytes]:
        log = (self.folder / "hub.log").open("ab")
        options = ["--http", f"127.0.0.1:{self.port}", "--config", str(self.folder / "mcp.json"), "--trust"]
        store = ["--store", f"file:{self.folder / 'sessions.redb'}", "--state-key", str(self.folder / "state.key")]
        return subprocess.Popen([self.binary, "serve", *options, *store], stdout=log, stderr=log)


async def echo(session: ClientSession, server: str, message: str) -> None:
    result = await session.call_tool(f"{server}__echo", {"message": message})
    text = " ".join(getattr(item, "text", "") for item in result.content)
    report.require(message in text, f"{server} answered {text!r}")


async def run(results: report.Report, hub: RestartedHub) -> None:
    running = hub.start()
    try:
        await wait_until_listening(hub.port)
        url = f"http://127.0.0.1:{hub.port}/mcp"
        async with streamablehttp_client(url) as (read, write, session_id), ClientSession(read, write) as session:
            await session.initialize()
            before = session_id()

            async def calls(word: str) -> None:
                for server in ["pipes", "web"]:
                    await echo(session, server, f"{word} the restart")

            await results.check("calls before the restart", lambda: calls("before"), CALL_LIMIT_SECONDS)
            for number in [1, 2]:
                running.send_signal(signal.SIGKILL)
                running.wait()
                running = hub.start()
                await wait_until_listening(hub.port)
                await results.check(f"calls after restart {number}", lambda: calls("after"), CALL_LIMIT_SECONDS)

            async def same_session() -> None:
                report.require(before and session_id() == before, f"{before} became {session_id()}")

            await results.check("the session is the same", same_session)
    finally:
        running.terminate()
        running.wait()


async def main() -> None:
    options: Any = report.arguments(["legacy"])
    binary = options.command[0]
    entry = json.loads(Path(options.config).read_text())["mcpServers"]["everything"]
    results = report.Report()
    with tempfile.TemporaryDirectory() as folder:
        hub = RestartedHub(binary, [entry["command"], *entry["args"]], Path(folder))
        upstream = hub.start_upstream()
        try:
            await wait_until_listening(hub.upstream_port)
            await run(results, hub)
        finally:
            upstream.terminate()
            upstream.wait()
    report.finish(results)


if __name__ == "__main__":
    anyio.run(main)
