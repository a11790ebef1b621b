// An MCP server whose every text tries to be markup, code or a control sequence.

import { createInterface } from "node:readline";

const EVIL = '<img src=x onerror="window.pwned=1"><script>window.pwned=1</script><b id="hostile">bold</b>\u001b[31m\u202e';
const PICTURE = '<svg xmlns="http://www.w3.org/2000/svg"><script>window.pwned=1</script></svg>';
const base64 = (text) => Buffer.from(text).toString("base64");
const fields = {
  [EVIL]: { type: "string", title: EVIL, description: EVIL }, __proto__x: { type: "string", enum: [EVIL, "b"] }, slow: { type: "string", pattern: "^(a+)+$" },
  nested: { type: "object", properties: { list: { type: "array", items: { type: "integer", minimum: 3 } }, either: { oneOf: [{ type: "string" }, { type: "object" }] } } },
  count: { type: "integer", maximum: 5 }, sure: { type: "boolean" },
};
/** A schema that refers to itself forty times, without end, and has references that cannot be decoded. */
const endless = { type: "object", properties: Object.fromEntries(Array.from({ length: 40 }, (_, at) => [`p${at}`, { $ref: at === 39 ? "#/%" : "#" }])) };
endless.required = Object.keys(endless.properties);
const tools = [
  { name: "endless", description: "A schema without end.", inputSchema: endless },
  { name: "markup", description: EVIL, inputSchema: { type: "object" } },
  { name: "proto", description: "__proto__", inputSchema: { type: "object", properties: { constructor: { type: "string" } } } },
  { name: "form", title: EVIL, description: EVIL, inputSchema: { type: "object", properties: fields, required: ["count"] } },
  { name: "table", description: "Structured content with rows.", inputSchema: { type: "object" } },
  { name: "page", description: "Wants a page opened.", inputSchema: { type: "object", properties: { url: { type: "string" } }, required: ["url"] } },
  { name: "media", description: "Pictures and sound that are neither.", inputSchema: { type: "object" } },
];

/** Structured content with rows, whose names and values are hostile. */
function table() {
  const rows = Array.from({ length: 150 }, (_, at) => JSON.parse(`{"number":${at},"__proto__":"p${at}","text":""}`));
  rows.forEach((row) => { row.text = EVIL; });
  return { content: [{ type: "text", text: "150 rows" }], structuredContent: { [EVIL]: rows, sum: 150 } };
}

function media() {
  return { content: [
    { type: "image", mimeType: "image/svg+xml", data: base64(PICTURE) }, { type: "image", mimeType: "text/html", data: base64(EVIL) },
    { type: "image", mimeType: "image/png", data: base64(PICTURE) }, { type: "audio", mimeType: "audio/wav", data: "not base64!" },
    { type: "resource_link", uri: "javascript:window.pwned=1", name: EVIL, description: EVIL },
    { type: "resource", resource: { uri: EVIL, mimeType: "text/html", text: EVIL } },
  ] };
}

/** The call that waits for an answer. */
let asking;

process.stderr.write(`${EVIL}\n`);
const send = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params, result } = JSON.parse(line);
  if (id === undefined) return;
  if (method === undefined) return send({ id: asking, result: { content: [{ type: "text", text: `the user: ${result?.action}` }] } });
  if (method === "initialize") {
    const capabilities = { tools: {}, logging: {} };
    return send({ id, result: { protocolVersion: params.protocolVersion, capabilities, serverInfo: { name: EVIL, version: EVIL } } });
  }
  if (method === "tools/list") return send({ id, result: { tools } });
  if (method !== "tools/call") return send({ id, error: { code: -32601, message: EVIL } });
  process.stderr.write(`${EVIL}\n`);
  send({ method: "notifications/message", params: { level: "error", logger: EVIL, data: EVIL } });
  if (params.name === "proto") return send({ id, error: { code: -32000, message: EVIL } });
  if (params.name === "page") {
    asking = id;
    return send({ id: "ask", method: "elicitation/create", params: { mode: "url", message: EVIL, url: params.arguments.url, elicitationId: "e1" } });
  }
  if (params.name === "table") return send({ id, result: table() });
  if (params.name === "media") return send({ id, result: media() });
  if (params.name === "form") return send({ id, result: { content: [{ type: "text", text: JSON.stringify(params.arguments) }] } });
  const structuredContent = JSON.parse('{"__proto__":{"polluted":true},"constructor":"x","long":""}');
  structuredContent.long = EVIL.repeat(400);
  send({ id, result: { content: [{ type: "text", text: EVIL }], structuredContent } });
});
