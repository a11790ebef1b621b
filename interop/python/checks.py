"""The checks themselves, in terms of the wire: both generations of the SDK are driven through `Peer`."""

import base64
from collections.abc import Awaitable, Callable

import anyio
from peer import MODEL_TEXT, NAME, Json, Peer
from report import Complaints, Report, Skip, require

SLOW_MILLISECONDS = 60_000
MODERN_REVISION = "2026-07-28"
WATCHED = "test://watched-resource"
UPDATE_TOOL = "test_trigger_resource_update"


def text_of(result: Json) -> str:
    return " ".join(item.get("text", "") for item in result["content"])


async def run(report: Report, peer: Peer, complaints: Complaints) -> None:
    """Runs every check that the negotiated era has."""
    suite = Suite(peer)
    names = [*COMMON, *(MODERN if peer.modern else LEGACY)]
    if peer.modern and peer.over_http:
        names.append("custom_header")
    # Cancellation comes last, so that the one check after it speaks of a server that has seen everything.
    for name in [*names, "cancel", "usable_after_cancel"]:
        await report.check(name, getattr(suite, name))
    await report.check("no_complaints", complaints.must_be_none)


COMMON = [
    "about",
    "list_tools",
    "list_prompts",
    "list_resources",
    "list_resource_templates",
    "call",
    "call_content_kinds",
    "call_tool_error",
    "call_unknown_tool",
    "call_wrong_arguments",
    "call_concurrently",
    "progress",
    "read_text",
    "read_binary",
    "read_template",
    "read_unknown",
    "get_prompt",
    "get_prompt_with_arguments",
    "get_prompt_contents",
    "completion",
    "elicitation_accept",
    "elicitation_decline",
    "sampling",
    "roots",
    "request_state",
    "multi_round",
    "several_at_once",
    "prompt_input",
    "logging",
]
LEGACY = ["ping", "list_changed_notification", "resource_subscription"]
MODERN = ["listen_list_changed", "listen_resource"]


class Suite:
    """One method for each check, named after the line that it prints."""

    def __init__(self, peer: Peer) -> None:
        self.peer = peer

    async def about(self) -> None:
        version, server = self.peer.about()
        expected = MODERN_REVISION if self.peer.modern else self.peer.revision
        require(version == expected, f"negotiated {version}, expected {expected}")
        require(server, "the server has no name")

    async def list_tools(self) -> None:
        tools = {tool["name"]: tool for tool in await self.peer.list_all("tools")}
        for name in ("test_simple_text", "test_tool_with_progress", "test_error_handling", "test_slow"):
            require(name in tools, f"no tool {name}")
        for tool in tools.values():
            require(tool["inputSchema"].get("type") == "object", f"{tool['name']} has no object schema")

    async def list_prompts(self) -> None:
        prompts = {prompt["name"]: prompt for prompt in await self.peer.list_all("prompts")}
        require("test_simple_prompt" in prompts, "no prompt test_simple_prompt")
        arguments = prompts["test_prompt_with_arguments"].get("arguments") or []
        require([argument["name"] for argument in arguments] == ["arg1", "arg2"], f"arguments are {arguments}")

    async def list_resources(self) -> None:
        uris = {resource["uri"] for resource in await self.peer.list_all("resources")}
        for uri in ("test://static-text", "test://static-binary", WATCHED):
            require(uri in uris, f"no resource {uri}")

    async def list_resource_templates(self) -> None:
        templates = {template["uriTemplate"] for template in await self.peer.list_all("resourceTemplates")}
        require("test://template/{id}/data" in templates, f"templates are {templates}")

    async def call(self) -> None:
        result = await self.peer.call("test_simple_text", {})
        require(text_of(result) == "This is a simple text response for testing.", f"got {result}")
        require(not result.get("isError"), "a good call was marked as an error")

    async def call_content_kinds(self) -> None:
        expected = {
            "test_image_content": {"image"},
            # The first revision has no sounds, and gets them as files.
            "test_audio_content": {"resource" if self.peer.revision < "2025-03-26" else "audio"},
            "test_embedded_resource": {"resource"},
            "test_multiple_content_types": {"text", "image", "resource"},
        }
        for tool, kinds in expected.items():
            result = await self.peer.call(tool, {})
            found = {item["type"] for item in result["content"]}
            require(found == kinds, f"{tool} returned {found}")

    async def call_tool_error(self) -> None:
        result = await self.peer.call("test_error_handling", {})
        require(result.get("isError") is True and text_of(result), f"got {result}")

    async def must_be_refused(self, attempt: Awaitable[Json]) -> None:
        """Passes when the server refuses, by a protocol error or by a result that says so."""
        try:
            result = await attempt
        except self.peer.refusal:
            return
        require(result.get("isError") is True, f"the server accepted it: {result}")

    async def call_unknown_tool(self) -> None:
        await self.must_be_refused(self.peer.call("no_such_tool", {}))

    async def call_wrong_arguments(self) -> None:
        await self.must_be_refused(self.peer.call("test_slow", {"milliseconds": "soon"}))

    async def call_concurrently(self) -> None:
        answers: list[str] = []

        async def one(number: int) -> None:
            contents = (await self.peer.read(f"test://template/{number}/data"))["contents"]
            require(str(number) in contents[0]["text"], f"{number} was answered with {contents}")
            answers.append(text_of(await self.peer.call("test_simple_text", {})))

        async with anyio.create_task_group() as group:
            for number in range(100, 120):
                group.start_soon(one, number)
        require(len(answers) == 20, f"{len(answers)} of 20 calls were answered")

    async def progress(self) -> None:
        steps: list[tuple[float, float | None]] = []

        async def note(progress: float, total: float | None, _message: str | None) -> None:
            steps.append((progress, total))

        await self.peer.call("test_tool_with_progress", {}, note)
        require(steps == [(0, 100), (50, 100), (100, 100)], f"progress was {steps}")

    async def read_text(self) -> None:
        contents = (await self.peer.read("test://static-text"))["contents"]
        require(contents[0]["uri"] == "test://static-text" and contents[0]["text"], f"got {contents}")

    async def read_binary(self) -> None:
        contents = (await self.peer.read("test://static-binary"))["contents"]
        require(base64.b64decode(contents[0]["blob"]).startswith(b"\x89PNG"), "the blob is not a PNG")

    async def read_template(self) -> None:
        contents = (await self.peer.read("test://template/123/data"))["contents"]
        require("123" in contents[0]["text"], f"got {contents}")

    async def read_unknown(self) -> None:
        await self.must_be_refused(self.peer.read("test://nothing-here"))

    async def get_prompt(self) -> None:
        messages = (await self.peer.prompt("test_simple_prompt", {}))["messages"]
        require(messages[0]["role"] == "user" and messages[0]["content"]["text"], f"got {messages}")

    async def get_prompt_with_arguments(self) -> None:
        messages = (await self.peer.prompt("test_prompt_with_arguments", {"arg1": "red", "arg2": "blue"}))["messages"]
        text = messages[0]["content"]["text"]
        require("red" in text and "blue" in text, f"got {text}")

    async def get_prompt_contents(self) -> None:
        uri = {"resourceUri": "test://example"}
        embedded = (await self.peer.prompt("test_prompt_with_embedded_resource", uri))["messages"]
        require(any(message["content"]["type"] == "resource" for message in embedded), f"got {embedded}")
        image = (await self.peer.prompt("test_prompt_with_image", {}))["messages"]
        require(any(message["content"]["type"] == "image" for message in image), f"got {image}")

    async def completion(self) -> None:
        completion = (await self.peer.complete("test_prompt_with_arguments", "arg1", "t"))["completion"]
        require(isinstance(completion["values"], list), f"got {completion}")

    async def ask(self, name: str, arguments: Json | None = None) -> tuple[str, list[str]]:
        """Calls a tool that asks the client for something; returns its text and what was asked."""
        self.peer.inputs.asked.clear()
        result = await self.peer.call(name, arguments or {})
        return text_of(result), list(self.peer.inputs.asked)

    async def need_forms(self, attempt: Callable[[], Awaitable[Json]]) -> None:
        """Skips a check that needs forms where the revision has none, after the attempt was refused."""
        if self.peer.revision >= "2025-06-18":
            return
        await self.must_be_refused(attempt())
        raise Skip(f"{self.peer.revision} has no elicitation")

    async def elicit(self, action: str) -> str:
        tool, arguments = "test_elicitation", {"message": "Who are you?"}
        await self.need_forms(lambda: self.peer.call(tool, arguments))
        if self.peer.modern:
            tool, arguments = "test_input_required_result_elicitation", {}
        self.peer.inputs.action = action
        try:
            text, asked = await self.ask(tool, arguments)
        finally:
            self.peer.inputs.action = "accept"
        require(asked == ["elicitation"], f"the server asked {asked}")
        return text

    async def elicitation_accept(self) -> None:
        text = await self.elicit("accept")
        require(NAME in text, f"the answer is not in the result: {text}")

    async def elicitation_decline(self) -> None:
        text = await self.elicit("decline")
        require(text and NAME not in text, f"got {text!r}")

    async def sampling(self) -> None:
        if self.peer.modern:
            text, asked = await self.ask("test_input_required_result_sampling")
        else:
            text, asked = await self.ask("test_sampling", {"prompt": "Say hello."})
        require(asked == ["sampling"], f"the server asked {asked}")
        require(MODEL_TEXT in text, f"the model's words are not in the result: {text}")

    async def roots(self) -> None:
        text, asked = await self.ask("test_input_required_result_list_roots")
        # A session is asked once, perhaps before.
        require(asked == ["roots"] or not (asked or self.peer.modern), f"the server asked {asked}")
        require("file:///interop" in text, f"got {text}")

    async def request_state(self) -> None:
        tool = "test_input_required_result_request_state"
        await self.need_forms(lambda: self.peer.call(tool, {}))
        text, _ = await self.ask(tool)
        require("state-ok" in text, f"got {text}")

    async def multi_round(self) -> None:
        tool = "test_input_required_result_multi_round"
        await self.need_forms(lambda: self.peer.call(tool, {}))
        _, asked = await self.ask(tool)
        require(asked == ["elicitation", "elicitation"], f"the server asked {asked}")

    async def several_at_once(self) -> None:
        tool = "test_input_required_result_multiple_inputs"
        await self.need_forms(lambda: self.peer.call(tool, {}))
        text, asked = await self.ask(tool)
        require({"elicitation", "sampling"} <= set(asked), f"the server asked {asked}")
        require(NAME in text and MODEL_TEXT in text and "file:///interop" in text, f"got {text}")

    async def prompt_input(self) -> None:
        prompt = "test_input_required_result_prompt"
        await self.need_forms(lambda: self.peer.prompt(prompt, {}))
        self.peer.inputs.asked.clear()
        messages = (await self.peer.prompt(prompt, {}))["messages"]
        require(self.peer.inputs.asked == ["elicitation"], f"the server asked {self.peer.inputs.asked}")
        require(NAME in messages[0]["content"]["text"], f"got {messages}")

    async def logging(self) -> None:
        before = len(self.peer.inbox.of("notifications/message"))
        if self.peer.modern:
            await self.peer.call("test_logging_tool", {})
            expected = 1
        else:
            await self.peer.set_level("debug")
            await self.peer.call("test_tool_with_logging", {})
            expected = 3
        messages = await self.peer.inbox.wait_for("notifications/message", before + expected)
        require(all(message["params"]["level"] for message in messages), f"got {messages}")

    # Legacy only

    async def ping(self) -> None:
        await self.peer.ping()

    async def list_changed_notification(self) -> None:
        before = len(self.peer.inbox.of("notifications/tools/list_changed"))
        await self.peer.call("test_trigger_tool_change", {})
        await self.peer.inbox.wait_for("notifications/tools/list_changed", before + 1)

    async def resource_subscription(self) -> None:
        await self.peer.subscribe(WATCHED)
        if await self.has_tool(UPDATE_TOOL):
            await self.peer.call(UPDATE_TOOL, {})
            updates = await self.peer.inbox.wait_for("notifications/resources/updated", 1)
            require(updates[0]["params"]["uri"] == WATCHED, f"got {updates}")
        await self.peer.unsubscribe(WATCHED)

    # Modern only

    async def listen_list_changed(self) -> None:
        async with self.peer.listen(True, []) as events:
            await self.peer.call("test_trigger_tool_change", {})
            event = await anext(events)
            require(event == "ToolsListChanged", f"got {event}")

    async def listen_resource(self) -> None:
        if not await self.has_tool(UPDATE_TOOL):
            raise Skip(f"the server has no tool {UPDATE_TOOL}")
        async with self.peer.listen(False, [WATCHED]) as events:
            await self.peer.call(UPDATE_TOOL, {})
            event = await anext(events)
            require(event == "ResourceUpdated", f"got {event}")

    async def custom_header(self) -> None:
        for tool in await self.peer.list_all("tools"):
            for key, schema in tool["inputSchema"].get("properties", {}).items():
                if "x-mcp-header" in schema and schema.get("type") == "string":
                    result = await self.peer.call(tool["name"], {key: " Zürich "})
                    require(not result.get("isError"), f"{tool['name']} said {result}")
                    return
        raise Skip("no tool has an x-mcp-header property")

    # Last

    async def cancel(self) -> None:
        await self.peer.cancel_call("test_slow", {"milliseconds": SLOW_MILLISECONDS})

    async def usable_after_cancel(self) -> None:
        result = await self.peer.call("test_slow", {"milliseconds": 1})
        require(text_of(result) == "slept", f"got {result}")

    async def has_tool(self, name: str) -> bool:
        return any(tool["name"] == name for tool in await self.peer.list_all("tools"))
