import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";

const MODULE = JSON.stringify(new URL("pause-compilers.ts", import.meta.url).href);
const CACHE = join(import.meta.dirname, "../../node_modules/.cache/compiled");

/** Prints whether V8 has compiled a function that is called often in the pause, and waits until it compiles it afterwards. */
const PROGRAM = `
import { setImmediate as turn } from "node:timers/promises";
import { pauseCompilers, resumeCompilers } from ${MODULE};

const status = new Function("f", "return %GetOptimizationStatus(f)");
const add = (a, b) => a + b;
async function callOften() {
  for (let time = 0; time < 100; time++) {
    for (let i = 0; i < 10_000; i++) add(i, time);
    await turn();
  }
}
pauseCompilers();
add(1, 1);
const interpreted = status(add);
await callOften();
console.log(status(add) === interpreted ? "interpreted" : "compiled");
resumeCompilers();
while (status(add) === interpreted) await callOften();
console.log("compiled");
`;

test.each([
  { state: "without a code cache", cache: undefined, paused: "interpreted" },
  { state: "with a code cache", cache: CACHE, paused: "compiled" },
])("functions are $paused in a pause $state, and compiled afterwards", async ({ cache, paused }) => {
  const args = ["--allow-natives-syntax", "--input-type=module", "--eval", PROGRAM];
  const { NODE_COMPILE_CACHE: _, ...env } = process.env;
  if (cache !== undefined) env["NODE_COMPILE_CACHE"] = cache;
  const { stdout } = await promisify(execFile)(process.execPath, args, { env });
  expect(stdout).toBe(`${paused}\ncompiled\n`);
});
