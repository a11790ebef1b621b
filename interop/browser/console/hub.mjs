// A hub of the real binary with real servers of both eras, its clients, and a proxy that can break.

import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

export class Hub {
  /**
   * @param {string} binary of trunkline
   * @param {string} server the everything-server
   */
  static async start(binary, server) {
    const folder = mkdtempSync(join(tmpdir(), "console-"));
    const everything = (revision) => ({ command: server, args: ["--stdio", "--revisions", revision] });
    const hostile = join(import.meta.dirname, "hostile_server.mjs");
    const mcpServers = {
      modern: everything("2026-07-28"), legacy: everything("2025-06-18"),
      hostile: { command: process.execPath, args: [hostile] },
      many: { command: process.execPath, args: [join(import.meta.dirname, "many_server.mjs")] },
      broken: { command: "sh", args: ["-c", "echo no such module >&2; exit 3"] },
    };
    writeFileSync(join(folder, "mcp.json"), JSON.stringify({ mcpServers }), { mode: 0o600 });
    const args = ["serve", "--trust", "--http", "127.0.0.1:0", "--admin-socket", join(folder, "admin.sock")];
    const child = spawn(binary, args, { cwd: folder, stdio: ["ignore", "ignore", "pipe"] });
    const hub = new Hub(binary, folder, child);
    hub.link = await hub.#waitFor(/http:\S+#token=\S+/);
    hub.url = `${new URL(hub.link).origin}/mcp`;
    return hub;
  }

  constructor(binary, folder, child) {
    Object.assign(this, { binary, folder, child, log: "" });
    child.stderr.setEncoding("utf8");
    child.stderr.on("data", (text) => { this.log += text; });
  }

  #waitFor(pattern) {
    return new Promise((resolve, reject) => {
      const look = () => {
        const found = pattern.exec(this.log);
        if (found) resolve(found[0]);
      };
      this.child.stderr.on("data", look);
      this.child.on("exit", () => reject(new Error(`the hub ended:\n${this.log}`)));
      look();
    });
  }

  /** Makes a further link to the console. */
  newLink(...options) {
    return this.trunkline("console", "--admin-socket", join(this.folder, "admin.sock"), ...options).trim();
  }

  /** Runs the command to its end. */
  trunkline(...args) {
    const done = spawnSync(this.binary, args, { cwd: this.folder, encoding: "utf8", timeout: 60_000 });
    if (done.status !== 0) throw new Error(`trunkline ${args.join(" ")}: ${done.status}\n${done.stderr}`);
    return done.stdout;
  }

  /** Runs the command while this process goes on. */
  async trunklineAsync(...args) {
    const child = spawn(this.binary, args, { cwd: this.folder, stdio: ["ignore", "pipe", "pipe"] });
    let output = "";
    child.stdout.on("data", (text) => { output += text; });
    child.stderr.on("data", (text) => { output += text; });
    const status = await new Promise((resolve) => child.on("close", resolve));
    return { status, output };
  }

  /** Calls a tool as a client of the modern era. */
  async call(name, args = {}, meta = {}) {
    const _meta = { "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}, "io.modelcontextprotocol/clientInfo": { name: "tester", version: "1" }, ...meta };
    const response = await fetch(this.url, {
      method: "POST",
      headers: {
        "content-type": "application/json", accept: "application/json, text/event-stream",
        "mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": name,
      },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, arguments: args, _meta } }),
    });
    return response.text();
  }

  /** Opens a session as a client of the legacy era, and returns its id. */
  async openSession(name) {
    const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };
    const params = { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name, version: "1" } };
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize", params });
    const response = await fetch(this.url, { method: "POST", headers, body });
    await response.text();
    const id = response.headers.get("mcp-session-id");
    const done = JSON.stringify({ jsonrpc: "2.0", method: "notifications/initialized" });
    await fetch(this.url, { method: "POST", headers: { ...headers, "mcp-session-id": id, "mcp-protocol-version": "2025-06-18" }, body: done });
    return id;
  }

  async stop() {
    const ended = new Promise((resolve) => this.child.on("exit", resolve));
    this.child.kill("SIGTERM");
    const code = await ended;
    rmSync(this.folder, { recursive: true, force: true });
    return code;
  }
}

/** A proxy in front of a port, whose connections can be cut. */
export class BreakableProxy {
  #sockets = new Set();
  #open = true;

  static async start(port) {
    const proxy = new BreakableProxy();
    proxy.server = createServer((socket) => {
      if (!proxy.#open) return socket.destroy();
      const far = connect(port, "127.0.0.1");
      for (const end of [socket, far]) {
        proxy.#sockets.add(end);
        end.on("error", () => end.destroy());
        end.on("close", () => { proxy.#sockets.delete(end); socket.destroy(); far.destroy(); });
      }
      socket.pipe(far).pipe(socket);
    });
    await new Promise((resolve) => proxy.server.listen(0, "127.0.0.1", resolve));
    proxy.port = proxy.server.address().port;
    return proxy;
  }

  /** Cuts every connection, and refuses new ones until it is mended. */
  cut() {
    this.#open = false;
    for (const socket of this.#sockets) socket.destroy();
  }

  mend() {
    this.#open = true;
  }

  stop() {
    this.cut();
    this.server.close();
  }
}
