// What the hub made of a message: which members it kept, changed, moved, added or dropped on the way to the other wire.

/** @import { Json } from "./types.d.ts" */

/**
 * What became of one member; `other` is its path, or its value before, on the other wire.
 * @typedef {{mark: "added" | "dropped" | "changed" | "moved", other: string}} MemberChange
 */

/**
 * The changes of two messages, each by the path of the member.
 * @typedef {{from: Map<string, MemberChange>, to: Map<string, MemberChange>}} MessageDiff
 */

/**
 * The path of a member, as the views write it.
 * @param {string} parent
 * @param {string | number} name
 */
export function memberPath(parent, name) {
  if (typeof name === "number") return `${parent}[${name}]`;
  const plain = /^[A-Za-z_$][\w$]*$/.test(name) ? `.${name}` : `[${JSON.stringify(name)}]`;
  return parent === "" ? plain.replace(/^\./, "") : parent + plain;
}

/**
 * Compares a message with what the hub made of it.
 * @param {Json} from
 * @param {Json} to
 * @returns {MessageDiff}
 */
export function diffMessages(from, to) {
  /** @type {MessageDiff} */
  const diff = { from: new Map(), to: new Map() };
  /** @type {Member[]} */
  const dropped = [];
  /** @type {Member[]} */
  const added = [];
  compare("", "", from, to, diff, dropped, added);
  findMoves(dropped, added, diff);
  for (const { path } of dropped) if (!diff.from.has(path)) diff.from.set(path, { mark: "dropped", other: "" });
  for (const { path } of added) if (!diff.to.has(path)) diff.to.set(path, { mark: "added", other: "" });
  return diff;
}

/** @typedef {{path: string, name: string, value: Json}} Member */

/**
 * @param {string} path
 * @param {string} name
 * @param {Json} from
 * @param {Json} to
 * @param {MessageDiff} diff
 * @param {Member[]} dropped
 * @param {Member[]} added
 */
function compare(path, name, from, to, diff, dropped, added) {
  if (isContainer(from) && isContainer(to) && Array.isArray(from) === Array.isArray(to)) {
    const [before, after] = [members(path, from), members(path, to)];
    for (const [key, member] of before) {
      const kept = after.get(key);
      if (kept) compare(member.path, member.name, member.value, kept.value, diff, dropped, added);
      else dropped.push(member);
    }
    for (const [key, member] of after) if (!before.has(key)) added.push(member);
    return;
  }
  if (JSON.stringify(from) === JSON.stringify(to)) return;
  if (isContainer(from) !== isContainer(to) || isContainer(from)) {
    dropped.push({ path, name, value: from });
    added.push({ path, name, value: to });
    return;
  }
  diff.from.set(path, { mark: "changed", other: JSON.stringify(to) });
  diff.to.set(path, { mark: "changed", other: JSON.stringify(from) });
}

/**
 * @param {Json} value
 * @returns {value is Json[] | {[name: string]: Json}}
 */
function isContainer(value) {
  return typeof value === "object" && value !== null;
}

/**
 * @param {string} path
 * @param {Json[] | {[name: string]: Json}} value
 * @returns {Map<string, Member>}
 */
function members(path, value) {
  const entries = Array.isArray(value)
    ? value.map((item, at) => /** @type {[string | number, Json]} */ ([at, item]))
    : Object.entries(value);
  return new Map(entries.map(([name, item]) => [
    String(name),
    { path: memberPath(path, name), name: String(name), value: item },
  ]));
}

/**
 * Pairs what is missing on one side with an equal value elsewhere on the other: the same content at another place.
 * @param {Member[]} dropped
 * @param {Member[]} added
 * @param {MessageDiff} diff
 */
function findMoves(dropped, added, diff) {
  /** @type {Map<string, Member[]>} */
  const targets = new Map();
  for (const member of added.flatMap(descendants)) {
    const known = JSON.stringify(member.value);
    if (isTelling(member.value)) targets.set(known, [...(targets.get(known) ?? []), member]);
  }
  const taken = new Set();
  for (const member of dropped.flatMap(descendants)) {
    if ([...taken].some((path) => member.path.startsWith(path))) continue;
    const same = (targets.get(JSON.stringify(member.value)) ?? []).filter(({ path }) => !diff.to.has(path));
    const target = same.find(({ name }) => name === member.name) ?? same[0];
    if (!target || !isTelling(member.value)) continue;
    taken.add(member.path);
    diff.from.set(member.path, { mark: "moved", other: target.path });
    diff.to.set(target.path, { mark: "moved", other: member.path });
  }
}

/**
 * A member and all below it, the outermost first.
 * @param {Member} member
 * @returns {Member[]}
 */
function descendants(member) {
  if (!isContainer(member.value)) return [member];
  return [member, ...[...members(member.path, member.value).values()].flatMap(descendants)];
}

/**
 * Whether an equal value elsewhere is no accident: `true` and `{}` are found everywhere.
 * @param {Json} value
 */
function isTelling(value) {
  return typeof value === "string" ? value.length > 2 : isContainer(value) && JSON.stringify(value).length > 4;
}
