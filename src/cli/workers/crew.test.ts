import assert from "node:assert/strict";
import { describe, it, test } from "vitest";
import { sourcesOf } from "../../../test/support/command-line.ts";
import type { Configuration } from "../../config/configuration.ts";
import { readServeOptions } from "../../config/serve-options.ts";
import { createCrewReadiness, createShares, slotNumbers } from "./crew.ts";
import type { WorkerThread } from "./worker-thread.ts";

test("a process is ready once all workers are, stays ready while one is replaced, and follows those that were ready", () => {
  const threads = [{ ready: false }, { ready: false }];
  let serving = threads.slice(0, 1);
  const changes: boolean[] = [];
  const readiness = createCrewReadiness(
    2,
    () => serving as unknown as WorkerThread[],
    (ready) => changes.push(ready),
  );
  function expectAfter(step: () => void, ready: boolean, what: string): void {
    step();
    readiness.update();
    assert.equal(readiness.ready, ready, what);
  }
  const [first, second] = threads as [{ ready: boolean }, { ready: boolean }];
  const replacement = { ready: false };
  expectAfter(() => (first.ready = true), false, "only one worker has started");
  expectAfter(() => (serving = threads), false, "the second one is not ready yet");
  expectAfter(() => (second.ready = true), true, "both are ready");
  expectAfter(() => (serving = [first]), true, "the second one has ended");
  expectAfter(() => (serving = [first, replacement]), true, "its replacement is not ready yet");
  expectAfter(() => (replacement.ready = true), true, "the replacement is ready");
  expectAfter(() => (replacement.ready = false), false, "the replacement is no longer ready");
  expectAfter(() => (serving = []), false, "nobody serves");
  assert.deepEqual(changes, [true, false]);
});

function configurationOf(roots: Readonly<Record<string, string>>, ...args: readonly string[]): Configuration {
  const options = (...more: readonly string[]) => readServeOptions(sourcesOf([...more, ...args]));
  const byName = new Map(
    Object.entries(roots).map(([name, root]) => [name, options("--root", root)] as const),
  );
  return {
    options: options(),
    databases: { byName, routes: [], pathPrefix: undefined, fallback: undefined },
  };
}

describe("createShares", () => {
  it("keeps the memory of databases whose backends stay, and gives others memory of their own", () => {
    const allocate = createShares(2);
    const first = allocate(configurationOf({ a: "/a", b: "/b" }));
    const second = allocate(
      configurationOf({ b: "/b", a: "/other", c: "/c" }, "--max-concurrent-calls", "3"),
      first,
    );
    assert.deepEqual(slotNumbers(first.databases), [0, 1]);
    assert.equal(second.databases["b"], first.databases["b"]);
    assert.notEqual(second.databases["a"]?.memory, first.databases["a"]?.memory);
    assert.equal(new Set([...slotNumbers(first.databases), ...slotNumbers(second.databases)]).size, 4);
  });

  it("keeps the numbers of limits unless limits change, and always those that no option changes", () => {
    const allocate = createShares(2);
    const rate = ["--rate-limit", "total=5"];
    const first = allocate(configurationOf({ a: "/a" }, ...rate));
    const same = allocate(configurationOf({ a: "/a" }, ...rate, "--log-level", "warn"), first);
    assert.deepEqual(Object.keys(same.cells), Object.keys(first.cells));
    for (const name in first.cells) assert.equal(same.cells[name], first.cells[name], name);
    const changed = allocate(configurationOf({ a: "/a" }, "--rate-limit", "total=6"), same);
    assert.notEqual(changed.cells["rate 0"], first.cells["rate 0"]);
    for (const name of ["resets", "token pauses"]) assert.equal(changed.cells[name], first.cells[name], name);
  });
});
