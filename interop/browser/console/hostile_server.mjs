// An MCP server whose every text tries to be markup, code or a control sequence.

import { createInterface } from "node:readline";

const EVIL = '<img src=x onerror="window.pwned=1"><script>window.pwned=1</script><b id="hostile">bold</b>\u001b[31m\u202e';
const tools = [
  { name: "markup", description: EVIL, inputSchema: { type: "object" } },
  { name: "proto", description: "__proto__", inputSchema: { type: "object", properties: { constructor: { type: "string" } } } },
];

process.stderr.write(`${EVIL}\n`);
const send = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return;
  if (method === "initialize") {
    const capabilities = { tools: {}, logging: {} };
    return send({ id, result: { protocolVersion: params.protocolVersion, capabilities, serverInfo: { name: EVIL, version: EVIL } } });
  }
  if (method === "tools/list") return send({ id, result: { tools } });
  if (method !== "tools/call") return send({ id, error: { code: -32601, message: EVIL } });
  process.stderr.write(`${EVIL}\n`);
  send({ method: "notifications/message", params: { level: "error", logger: EVIL, data: EVIL } });
  if (params.name === "proto") return send({ id, error: { code: -32000, message: EVIL } });
  const structuredContent = JSON.parse('{"__proto__":{"polluted":true},"constructor":"x","long":""}');
  structuredContent.long = EVIL.repeat(400);
  send({ id, result: { content: [{ type: "text", text: EVIL }], structuredContent } });
});
