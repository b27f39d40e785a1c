import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { run, test } from "node:test";

/** Why the adapter cannot answer as the contract asks, and the tests that tell; beside them those that may pass. */
interface Deviations {
  readonly always: Readonly<Record<string, readonly string[]>>;
  readonly sometimes: Readonly<Record<string, readonly string[]>>;
}

const folder = join(import.meta.dirname, "support");
const { always, sometimes } = JSON.parse(
  readFileSync(join(folder, "adapter-deviations.json"), "utf8"),
) as Deviations;

test("the contract, on the Rust adapter through the REST backend", { timeout: 300_000 }, async (context) => {
  const { passed, failed } = await outcomes(join(folder, "adapter-contract.ts"));
  const known = new Set(Object.values(always).flat());
  const racy = new Set(Object.values(sometimes).flat());
  const unknown = [...failed].filter((name) => !known.has(name) && !racy.has(name));
  const mended = [...known].filter((name) => !failed.has(name));
  assert.deepEqual({ unknown, mended }, { unknown: [], mended: [] });
  assert.ok(passed.size > 100, `${passed.size} tests passed`);
  context.diagnostic(
    `${passed.size} tests passed, ${failed.size} cannot, for ${Object.keys(always).length} reasons`,
  );
});

/** Runs a file of tests; their full names, in the file's suite, by how they ended. */
async function outcomes(file: string): Promise<{ passed: Set<string>; failed: Set<string> }> {
  const passed = new Set<string>();
  const failed = new Set<string>();
  const path: string[] = [];
  // A run inside a run is skipped by default, lest a file runs itself.
  delete process.env["NODE_TEST_CONTEXT"];
  const stream = run({ files: [file] });
  stream.on("test:start", ({ nesting, name }) => {
    path.length = nesting;
    path[nesting] = name;
  });
  const into =
    (names: Set<string>) =>
    ({
      nesting,
      name,
      details,
    }: {
      nesting: number;
      name: string;
      details: { type?: string | undefined };
    }) => {
      if (details.type !== "suite" && nesting > 0) names.add([...path.slice(1, nesting), name].join(" > "));
    };
  stream.on("test:pass", into(passed)).on("test:fail", into(failed));
  for await (const _ of stream);
  return { passed, failed };
}
