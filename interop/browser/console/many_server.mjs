// An MCP server with a thousand tools, one of which ends it.

import { createInterface } from "node:readline";

const property = { type: "string", description: "A text that the tool gives back, in the language of its caller." };
const tools = Array.from({ length: 1000 }, (_, at) => ({
  name: `tool_${String(at).padStart(4, "0")}`, description: `Gives back its text, as number ${at} of a thousand.`,
  inputSchema: { type: "object", properties: Object.fromEntries(Array.from({ length: at % 7 }, (_, n) => [`text_${n}`, property])) },
}));
tools.push({ name: "die", description: "Ends the server.", inputSchema: { type: "object" } });

const send = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return;
  if (method === "initialize") {
    return send({ id, result: { protocolVersion: params.protocolVersion, capabilities: { tools: {}, logging: {} }, serverInfo: { name: "many", version: "1" } } });
  }
  if (method === "tools/list") return send({ id, result: { tools } });
  if (method !== "tools/call") return send({ id, result: {} });
  if (params.name === "die") {
    process.stderr.write("many: out of patience\n", () => process.exit(3));
    return;
  }
  send({ id, result: { content: [{ type: "text", text: params.name }] } });
});
