import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "vitest";
import { temporaryDirectory } from "../support/directory.ts";
import { NODE } from "../support/node-command.ts";

/** Why the adapter cannot answer as the contract asks, and the tests that tell; beside them those that may pass. */
interface Deviations {
  readonly always: Readonly<Record<string, readonly string[]>>;
  readonly sometimes: Readonly<Record<string, readonly string[]>>;
}

const PROJECT = join(import.meta.dirname, "..", "..");
const folder = join(import.meta.dirname, "support");
const { always, sometimes } = JSON.parse(
  readFileSync(join(folder, "adapter-deviations.json"), "utf8"),
) as Deviations;

test("the contract, on the Rust adapter through the REST backend", { timeout: 300_000 }, async (context) => {
  const { passed, failed } = await outcomes(join(folder, "adapter.config.ts"));
  const known = new Set(Object.values(always).flat());
  const racy = new Set(Object.values(sometimes).flat());
  const unknown = [...failed].filter((name) => !known.has(name) && !racy.has(name));
  const mended = [...known].filter((name) => !failed.has(name));
  assert.deepEqual({ unknown, mended }, { unknown: [], mended: [] });
  assert.ok(passed.size > 100, `${passed.size} tests passed`);
  await context.annotate(
    `${passed.size} tests passed, ${failed.size} cannot, for ${Object.keys(always).length} reasons`,
  );
});

/** The part of Vitest's report in JSON that is read here. */
interface Report {
  readonly testResults: readonly {
    readonly assertionResults: readonly {
      readonly ancestorTitles: readonly string[];
      readonly title: string;
      readonly status: string;
    }[];
  }[];
}

/** Runs the tests of a configuration; the full names of the tests, in the outermost suite, by how they ended. */
async function outcomes(config: string): Promise<{ passed: Set<string>; failed: Set<string> }> {
  const directory = await temporaryDirectory();
  const report = join(directory.path, "report.json");
  const runner = join(PROJECT, "node_modules", "vitest", "vitest.mjs");
  const args = [...NODE.slice(1), runner, "run", "--config", config, "--outputFile", report];
  const child = spawn(NODE[0], args, { cwd: PROJECT, stdio: ["ignore", "ignore", "inherit"] });
  await once(child, "exit");
  const { testResults } = JSON.parse(await readFile(report, "utf8")) as Report;
  await directory.remove();
  const tests = testResults.flatMap(({ assertionResults }) => assertionResults);
  const namesOf = (status: string) =>
    tests
      .filter((each) => each.status === status)
      .map(({ ancestorTitles, title }) => [...ancestorTitles.slice(1), title].join(" > "));
  return { passed: new Set(namesOf("passed")), failed: new Set(namesOf("failed")) };
}
