// The sessions page: the legacy sessions of clients, which can be ended, and the logins of users at servers.

import { confirmed } from "./confirm.js";
import { announce, element, setText } from "./dom.js";
import { count, span } from "./format.js";
import { registerPage } from "./registry.js";
import { api } from "./session.js";
import { DataTable, cellButton } from "./table.js";

/** @import { ClientLogin, ClientSession, SessionsReport } from "./types.d.ts" */
/** @import { ConsoleApp } from "./app.js" */
/** @import { PageView } from "./registry.js" */
/** @import { TableColumn } from "./table.js" */

/** @implements {PageView} */
class SessionsView {
  interval = 5000;
  #app;
  /** @type {SessionsReport | undefined} */
  #report;
  #problem = "";
  #message = element("p", { class: "problem", role: "status" });
  #sessions;
  #sessionCount = element("span", { class: "quiet" });
  #logins;
  #loginCount = element("span", { class: "quiet" });

  /**
   * @param {ConsoleApp} app
   * @param {HTMLElement} root
   */
  constructor(app, root) {
    this.#app = app;
    this.#sessions = new DataTable({
      id: "session-rows", columns: this.#sessionColumns(), key: ({ id }) => id,
      empty: element("p", { class: "quiet" }, "No sessions. Clients of 2026-07-28 and later have none."),
    });
    this.#logins = new DataTable({
      id: "login-rows", columns: loginColumns(), key: ({ user, servers, issuer }) => JSON.stringify([user, servers, issuer]),
      empty: element("p", { class: "quiet" }, "No logins are stored."),
    });
    root.append(this.#message,
      element("section", { "aria-label": "Sessions" }, element("h2", {}, "Sessions ", this.#sessionCount), this.#sessions.root),
      element("section", { "aria-label": "Logins" }, element("h2", {}, "Logins ", this.#loginCount), this.#logins.root,
        element("p", { class: "quiet footnote" }, "The logins of users at servers. Tokens are never shown; ",
          element("code", {}, "trunkline logout --user"), " ends those of a user.")));
  }

  async refresh() {
    try {
      this.#report = /** @type {SessionsReport} */ (await (await api("sessions")).json());
      this.#problem = "";
    } catch (error) {
      this.#problem = error instanceof Error ? error.message : String(error);
      throw error;
    }
  }

  draw() {
    setText(this.#message, this.#problem);
    const report = this.#report;
    if (!report) return;
    const more = (/** @type {boolean} */ is) => (is ? " and more" : "");
    setText(this.#sessionCount, `${count(report.sessions.length, "session")}${more(report.is_truncated)}, kept in ${report.store}`);
    this.#sessions.draw(report.sessions);
    setText(this.#loginCount, `${count(report.logins.length, "login")}${more(report.has_more_logins)}`);
    this.#logins.draw(report.logins);
  }

  /** @returns {TableColumn<ClientSession>[]} */
  #sessionColumns() {
    const columns = /** @type {TableColumn<ClientSession>[]} */ ([
      { title: "Session", hint: "The first characters of its id", isHead: true, name: "mono", text: ({ id }) => id },
      { title: "Client", label: "client", text: ({ client }) => client ?? "" },
      { title: "User", label: "user", text: ({ principal }) => principal },
      { title: "Revision", name: "mono", label: "revision", text: ({ revision }) => revision },
      { title: "Transport", label: "transport", text: ({ transport }) => transport },
      { title: "Log level", label: "log level", text: ({ log_level }) => log_level ?? "" },
      { title: "Subscriptions", label: "subscriptions", draw: drawSubscriptions },
      { title: "Open", label: "open", text: ({ age_s }) => span(age_s) },
      { title: "Last used", label: "last used", text: ({ is_busy, idle_s }) => (is_busy ? "now" : idle_s === undefined ? "" : `${span(idle_s)} ago`) },
    ]);
    if (this.#app.isOperator) {
      columns.push({ title: "Action", name: "row-actions", draw: (cell, session) => this.#drawEnd(cell, session) });
    }
    return columns;
  }

  /**
   * @param {HTMLElement} cell
   * @param {ClientSession} session
   */
  #drawEnd(cell, session) {
    if (session.transport === "stdio") return cell.replaceChildren();
    const name = session.client ?? session.id;
    cellButton(cell, "End", `End the session of ${name}`, () => void this.#end(session), "small");
  }

  /** @param {ClientSession} session */
  async #end(session) {
    const text = `End the session ${session.id} of ${session.client ?? "a client"}? Its running calls are cancelled, and the client has to connect again.`;
    if (!(await confirmed(text, "End session"))) return;
    try {
      await api("sessions", { method: "DELETE", body: JSON.stringify({ session: session.id }) });
      announce("The session has ended");
      await this.refresh();
      this.#app.requestDraw();
    } catch (error) {
      announce(error instanceof Error ? error.message : String(error));
    }
  }
}

/**
 * @param {HTMLElement} cell
 * @param {ClientSession} session
 */
function drawSubscriptions(cell, { subscriptions }) {
  setText(cell, subscriptions.length === 0 ? "" : count(subscriptions.length, "resource"));
  cell.title = subscriptions.join("\n");
}

/** @returns {TableColumn<ClientLogin>[]} */
function loginColumns() {
  const user = (/** @type {ClientLogin} */ { user, display_name }) => (display_name ? `${display_name} (${user})` : user);
  const expiry = (/** @type {ClientLogin} */ { expires_in_s: left }) =>
    left === undefined ? "not known" : left >= 0 ? `in ${span(left)}` : `${span(-left)} ago`;
  return [
    { title: "User", isHead: true, text: user },
    { title: "Server", label: "server", text: ({ servers }) => servers.join(", ") },
    { title: "Issuer", label: "issuer", text: ({ issuer }) => issuer },
    { title: "Scopes", label: "scopes", text: ({ scopes }) => scopes.join(" ") },
    { title: "Expires", label: "expires", text: expiry },
    { title: "Renewed", hint: "Whether the hub gets a new access token without the user", label: "renewed", text: ({ is_renewable }) => (is_renewable ? "by the hub" : "by the user") },
  ];
}

registerPage({
  id: "sessions", title: "Sessions", isOffered: (report) => report?.sees_all === true,
  create: (app, root) => new SessionsView(app, root),
});
