"""Checks of the servers behind a hub, one after the other, in terms of the wire: clients are driven through `Peer`."""

from collections.abc import Awaitable, Callable
from functools import partial

import hub
from checks import text_of
from hub import FASTMCP_2, FASTMCP_4, MCP_1_2, RMCP, SERVERS
from peer import MODEL_TEXT, NAME, Peer
from report import Complaints, Report, require

# What each server can ask of a client of each era: through the hub it has to ask whatever it can ask directly.
QUESTIONS_LEGACY = {
    FASTMCP_2: ("ask_person", "ask_model", "ask_roots"),
    FASTMCP_4: ("ask_person",),
    RMCP: ("ask_person", "ask_model", "ask_roots"),
    MCP_1_2: ("ask_model", "ask_roots"),
}
QUESTIONS_MODERN = {
    FASTMCP_2: ("ask_person", "ask_model", "ask_roots"),
    FASTMCP_4: ("ask_by_result",),
    RMCP: ("ask_by_result",),
    MCP_1_2: ("ask_model", "ask_roots"),
}
ANSWERS = {
    "ask_person": f"accept {NAME}",
    "ask_by_result": f"accept {NAME}",
    "ask_model": MODEL_TEXT,
    "ask_roots": "file:///interop",
}
# The same of server-everything, whose tools have names of their own.
EVERYTHING = {
    "trigger-elicitation-request": NAME,
    "trigger-sampling-request": MODEL_TEXT,
    "get-roots-list": "file:///interop",
}

Check = Callable[[], Awaitable[None]]


async def run(report: Report, peer: Peer, complaints: Complaints) -> None:
    suite = Suite(peer)
    await report.check("revision", suite.revision)
    await report.check("list", suite.list, hub.CHECK_LIMIT_SECONDS)
    for name, check in calls_of(suite, peer.modern).items():
        await report.check(name, check)
    await report.check("no_complaints", complaints.must_be_none)


def calls_of(suite: "Suite", modern: bool) -> dict[str, Check]:
    checks: dict[str, Check] = {"add": suite.add}
    for server in SERVERS:
        checks[f"{server} progress"] = partial(suite.progress, f"{server}__count")
        checks[f"{server} log"] = partial(suite.log, f"{server}__log")
    for servers, tools in (QUESTIONS_MODERN if modern else QUESTIONS_LEGACY).items():
        for server in servers:
            for tool in tools:
                checks[f"{server} {tool}"] = partial(suite.question, f"{server}__{tool}", ANSWERS[tool])
    for tool, answer in EVERYTHING.items():
        checks[f"everything {tool}"] = partial(suite.question, f"everything__{tool}", answer)
    return checks


class Suite:
    def __init__(self, peer: Peer) -> None:
        self.peer = peer

    async def revision(self) -> None:
        version, _ = self.peer.about()
        require(version == self.peer.revision, f"negotiated {version}, expected {self.peer.revision}")

    async def list(self) -> None:
        names = await hub.until_listed(self.names)
        require(not any(name.startswith("hanging") for name in names), "the server that hangs has listed tools")

    async def names(self) -> set[str]:
        return {tool["name"] for tool in await self.peer.list_all("tools")}

    async def add(self) -> None:
        async def one(tool: str, a: int, b: int) -> str:
            return text_of(await self.peer.call(tool, {"a": a, "b": b}))

        await hub.add_everywhere(one)

    async def progress(self, tool: str) -> None:
        steps: list[tuple[float, float | None]] = []

        async def note(progress: float, total: float | None, _message: str | None) -> None:
            steps.append((progress, total))

        result = await self.peer.call(tool, {"to": 3}, note)
        require(text_of(result) == "counted to 3", f"got {result}")
        # Steps that come faster than they are read may be merged, but the last one has to arrive.
        require(steps and steps[-1] == (3, 3), f"progress was {steps}")
        require(steps == sorted(set(steps)), f"progress went back or stood still: {steps}")

    async def log(self, tool: str) -> None:
        if not self.peer.modern:
            await self.peer.set_level("debug")
        before = len(self.peer.inbox.of("notifications/message"))
        await self.peer.call(tool, {})
        messages = await self.peer.inbox.wait_for("notifications/message", before + 1)
        line = messages[-1]["params"]
        require(line["level"] == "warning" and "a warning" in str(line["data"]), f"got {line}")

    async def question(self, tool: str, answer: str) -> None:
        self.peer.inputs.asked.clear()
        result = await self.peer.call(tool, {"prompt": "Say hello."} if "sampling" in tool else {})
        require(answer in text_of(result), f"was asked {self.peer.inputs.asked}; the result is {result}")
