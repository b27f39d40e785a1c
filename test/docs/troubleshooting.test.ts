import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { TableCell } from "mdast";
import { visit } from "unist-util-visit";
import { test } from "vitest";
import { parseMarkdown } from "../../scripts/prose/markdown.ts";

const ROOT = join(import.meta.dirname, "..", "..");

/** Messages of other programs. */
const OF_OTHERS = new Set(["wrong version number"]);

/** Returns the messages of the page: the code in the first column of its tables. */
function messages(): string[] {
  const found: string[] = [];
  visit(parseMarkdown(readFileSync(join(ROOT, "docs", "troubleshooting.md"), "utf8")), "table", (table) => {
    for (const row of table.children.slice(1))
      visit(row.children[0] as TableCell, "inlineCode", ({ value }) => void found.push(value));
  });
  return found.filter((message) => !OF_OTHERS.has(message));
}

test("the gateway has every message of the page about trouble", () => {
  const files = globSync("src/**/*.ts", { cwd: ROOT }).filter((path) => !/\.test\.ts$|\/gen\//.test(path));
  const sources = files.map((path) => readFileSync(join(ROOT, path), "utf8"));
  const known = messages();
  assert.ok(known.length > 20);
  const missing = known.filter((message) => {
    const parts = message.split("…").map((part) => part.trim());
    return !sources.some((source) => parts.every((part) => source.includes(part)));
  });
  assert.deepEqual(missing, []);
});
