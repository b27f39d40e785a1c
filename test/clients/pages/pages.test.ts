import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "vitest";
import { ROOT } from "../support/tools.ts";
import { hasSnippets } from "./blocks.ts";
import { GROUNDS, withPython } from "./grounds.ts";
import { runPage } from "./session.ts";

/** Pages that run with the engines, in `test/engines/pages.test.ts`. */
const OF_ENGINES: ReadonlySet<string> = new Set(
  ["langchain-and-llamaindex", "ray", "spark"].map((name) => `docs/how-to/${name}.md`),
);

const PAGES = globSync(["README.md", "CONTRIBUTING.md", "SECURITY.md", "docs/**/*.md"], { cwd: ROOT })
  .filter((page) => !OF_ENGINES.has(page) && hasSnippets(readFileSync(join(ROOT, page), "utf8")))
  .sort();

for (const page of PAGES)
  test(`${page} does what it says`, async ({ onTestFinished }) => {
    const open = GROUNDS[page] ?? withPython();
    await runPage(page, await open(onTestFinished));
  });
