// How the page proves to be the one that the operator opened.
//
// The link has a one-time token behind `#`, which no request carries. The page exchanges it for two secrets: a cookie that scripts
// cannot read, and a header token that is kept in memory. Cookies are sent to every port of this machine, so the header token is
// what another local server must never get: no request returns it again. For a reload, and only while the page is being left, it
// is put into the storage of this tab, which belongs to this scheme, host and port alone, and is removed as soon as it is read.

const HEADER = "x-trunkline-console";
const STORED = "trunkline-console";

/** The token of this page. */
let headerToken = "";

/** A session that the hub does not accept, or has ended. */
export class SignedOut extends Error {}

/** A request that the hub refuses, with its reason. */
export class RefusedRequest extends Error {
  /**
   * @param {number} status
   * @param {string} reason
   */
  constructor(status, reason) {
    super(reason);
    this.status = status;
    this.reason = reason;
  }
}

/**
 * Takes the token of the link, or that of the page before a reload.
 * @returns {Promise<boolean>} whether there is a session
 */
export async function openSession() {
  const stored = takeStored();
  addEventListener("pagehide", () => {
    if (headerToken) sessionStorage.setItem(STORED, headerToken);
  });
  // A page that the browser kept whole has its token still.
  addEventListener("pageshow", () => sessionStorage.removeItem(STORED));
  const oneTime = new URLSearchParams(location.hash.slice(1)).get("token");
  if (oneTime !== null) {
    history.replaceState(null, "", location.pathname);
    if (await exchange({ token: oneTime })) return true;
  }
  headerToken = stored;
  return headerToken !== "";
}

/**
 * Signs in with an access token of the hub, where it has users.
 * @param {string} bearer
 */
export function signIn(bearer) {
  return exchange({ bearer });
}

/** @param {Record<string, string>} proof */
async function exchange(proof) {
  const response = await fetch("api/session", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(proof),
  });
  if (!response.ok) return false;
  headerToken = String((await response.json()).header_token);
  return true;
}

/** Forgets the token of this page. */
export function forgetSession() {
  headerToken = "";
}

function takeStored() {
  const stored = sessionStorage.getItem(STORED) ?? "";
  sessionStorage.removeItem(STORED);
  return stored;
}

/**
 * Calls the API of the console.
 * @param {string} path
 * @param {RequestInit} [options]
 * @returns {Promise<Response>}
 * @throws {SignedOut} if there is no session
 * @throws {Error} with the reason of the hub, if it refuses
 */
export async function api(path, options = {}) {
  const response = await fetch(`api/${path}`, { cache: "no-store", ...options, headers: { [HEADER]: headerToken } });
  if (response.status === 401) {
    headerToken = "";
    throw new SignedOut();
  }
  if (!response.ok) throw new RefusedRequest(response.status, await reasonOf(response));
  return response;
}

/** @param {Response} response */
async function reasonOf(response) {
  const body = await response.json().catch(() => undefined);
  return typeof body?.error === "string" ? body.error : `HTTP ${response.status}`;
}
