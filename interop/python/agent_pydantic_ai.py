"""Lets an agent of the PyPI package `pydantic-ai` use a server, as its documentation shows."""

from typing import Any

import anyio
import report
from fastmcp.client.transports import StdioTransport
from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from report import require


class Script:
    """In place of a model: calls one tool, and then says what it heard of it."""

    def __init__(self, tool: str, arguments: dict[str, Any]) -> None:
        self.call = ToolCallPart(tool, arguments)
        self.offered: dict[str, Any] = {}

    def __call__(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        self.offered = {tool.name: tool.parameters_json_schema for tool in info.function_tools}
        match messages[-1].parts[-1]:
            case ToolReturnPart(content=content):
                return ModelResponse(parts=[TextPart(f"heard: {content}")])
            case _:
                return ModelResponse(parts=[self.call])


class Suite:
    def __init__(self, toolset: MCPToolset) -> None:
        self.toolset = toolset

    async def run(self, tool: str, arguments: dict[str, Any]) -> tuple[Script, str]:
        script = Script(tool, arguments)
        agent = Agent(FunctionModel(script), toolsets=[self.toolset])
        return script, (await agent.run("Use the tool.")).output

    async def tools_are_offered(self) -> None:
        script, _ = await self.run("test_simple_text", {})
        require(len(script.offered) > 20, f"the model is offered {list(script.offered)}")
        schema = script.offered["test_custom_header"]
        require(schema["type"] == "object" and schema["properties"], f"the schema is {schema}")

    async def a_tool_is_called(self) -> None:
        _, said = await self.run("test_simple_text", {})
        require(said == "heard: This is a simple text response for testing.", said)

    async def a_failed_tool_is_heard_of(self) -> None:
        _, said = await self.run("test_error_handling", {})
        require(said == "heard: This tool intentionally returns an error for testing", said)

    async def resources_are_read(self) -> None:
        listed = await self.toolset.list_resources()
        require(any(resource.uri == "test://static-text" for resource in listed), f"the resources are {listed}")
        read = await self.toolset.read_resource("test://static-text")
        require("static text resource" in str(read), str(read))


CHECKS = ["tools_are_offered", "a_tool_is_called", "a_failed_tool_is_heard_of", "resources_are_read"]


async def main() -> None:
    options = report.arguments(["auto"])
    results = report.Report()
    server = options.url or StdioTransport(options.command[0], options.command[1:])
    try:
        async with MCPToolset(server) as toolset:
            suite = Suite(toolset)
            for name in CHECKS:
                await results.check(name, getattr(suite, name))
    except Exception as error:
        results.not_ok("connection", report.explain(error))
    report.finish(results)


if __name__ == "__main__":
    anyio.run(main)
