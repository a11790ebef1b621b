// The page as it is embedded: all of it, compressed, within its budget.

import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";

const BUDGET = 150_000;

export function pageSize(folder) {
  const files = readdirSync(folder).filter((name) => !name.endsWith(".d.ts"));
  const size = files.reduce((sum, name) => sum + gzipSync(readFileSync(join(folder, name))).length, 0);
  if (size > BUDGET) throw new Error(`the page has ${size} bytes compressed`);
  return `the page: ${files.length} files, ${size} bytes compressed`;
}
