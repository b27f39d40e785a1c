import assert from "node:assert/strict";
import { expect, test, vi } from "vitest";
import { table } from "../../../../../test/fixtures/catalog/catalog.ts";
import { declare, openWorkers } from "../../../../../test/fixtures/catalog/workers.ts";
import { failsWith } from "../../../../../test/fixtures/dir/directory-backend.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import type { Catalog } from "../catalog.ts";
import type { Mutation } from "../commits/decide.ts";

test("mutations of all workers are few commits, which no worker reads from the storage", async (t) => {
  const { catalogs, reads, versions } = await openWorkers(t, 3);
  const names = Array.from({ length: 60 }, (_, number) => `t${number}`);
  await Promise.all(names.map((name, number) => declare(catalogs[number % 3] as Catalog, name)));
  assert.ok(versions() < 10, `${versions()} commits`);
  for (const catalog of catalogs) {
    const state = await catalog.read();
    for (const name of names) assert.ok(state.get(name), name);
  }
  assert.deepEqual(reads, []);
});

test("a decision on an old state is made again, so that one of several workers gets a name", async (t) => {
  const { catalogs, other } = await openWorkers(t, 3);
  for (let round = 0; round < 5; round++) {
    const outcomes = await Promise.allSettled(catalogs.map((catalog) => declare(catalog, `n${round}`)));
    assert.equal(outcomes.filter(({ status }) => status === "fulfilled").length, 1);
    for (const outcome of outcomes)
      if (outcome.status === "rejected") assert.ok(failsWith("TableAlreadyExists")(outcome.reason));
  }
  await declare(other(), "foreign");
  await assert.rejects(declare(catalogs[1], "foreign"), failsWith("TableAlreadyExists"));
  await catalogs[1].mutate((draft) => draft.delete("foreign"));
  await declare(catalogs[2], "foreign");
});

test("a refusal that an old state gave is not the answer", async (t) => {
  const { catalogs } = await openWorkers(t, 2);
  const [first, second] = catalogs;
  const need = (draft: Parameters<Parameters<Catalog["mutate"]>[0]>[0]) => {
    if (draft.get("parent") === undefined) throw new LanceError("NamespaceNotFound", "parent");
    draft.put(table("parent$child"));
  };
  await assert.rejects(second.mutate(need), failsWith("NamespaceNotFound"));
  const known = second.known();
  await Promise.all([declare(first, "parent"), expect.poll(() => known.get("parent")).toBeDefined()]);
  await second.mutate(need);
  assert.ok((await first.read()).get("parent$child"));
});

test("verdicts of changes are known to all workers, and forgotten by the one that commits", async (t) => {
  const { catalogs } = await openWorkers(t, 2);
  const [first, second] = catalogs;
  assert.equal(await second.mutate((draft) => draft.record("change", "committed")), "committed");
  assert.equal(await first.mutate((draft) => draft.record("change", "refused")), "committed");
  second.forget("change");
  await declare(second, "later");
  await declare(first, "last");
  for (const catalog of catalogs) assert.equal((await catalog.read()).verdictOf("change"), undefined);
});

test("a mutation of many rows is committed by its own worker", async (t) => {
  const { catalogs } = await openWorkers(t, 2);
  const [first, second] = catalogs;
  const names = Array.from({ length: 1_500 }, (_, number) => `many$t${number}`);
  await second.mutate((draft) => {
    for (const name of names) draft.put(table(name));
  });
  assert.equal((await first.read()).size, 1 + names.length);
  await second.mutate(function* (draft) {
    for (const id of draft.descendants("many")) {
      draft.delete(id);
      yield;
    }
  } as Mutation<void>);
  for (const catalog of catalogs) assert.equal((await catalog.read()).size, 1);
});

test("a mutation that waits longer for the committing worker than its decision counts is committed by its own worker", async (t) => {
  const realNow = Date.now;
  let waitedMs = 0;
  const clock = vi.spyOn(Date, "now").mockImplementation(() => realNow() + waitedMs);
  t.onTestFinished(() => clock.mockRestore());
  const { catalogs } = await openWorkers(t, 2, (manifest) => ({
    async head() {
      waitedMs += 6_000;
      return manifest.head();
    },
  }));
  const [first, second] = catalogs;
  await declare(second, "t");
  assert.ok((await first.read()).get("t"));
});

test("errors of a commit reach the worker whose mutation it was, with their kind", async (t) => {
  let failure: LanceError | undefined;
  const { catalogs } = await openWorkers(t, 2, (manifest) => ({
    async prepare(...args) {
      if (failure !== undefined) throw failure;
      return manifest.prepare(...args);
    },
  }));
  failure = new LanceError("Throttling", "the storage is busy", {
    headers: { "retry-after": "1" },
    limit: "waiting_changes",
  });
  await assert.rejects(declare(catalogs[1], "t"), (error: LanceError) => {
    const { kind, message, limit } = error;
    assert.deepEqual([kind, message, limit], ["Throttling", "the storage is busy", "waiting_changes"]);
    assert.deepEqual(error.headers, { "retry-after": "1" });
    return true;
  });
});

test("when the committing worker ends, the others go on; what it was asked may be stored or not", async (t) => {
  const [begun, gate] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  let isSlow = false;
  const { catalogs, disconnect } = await openWorkers(t, 3, (manifest) => ({
    async prepare(...args) {
      if (isSlow) {
        begun.resolve();
        await gate.promise;
      }
      return manifest.prepare(...args);
    },
  }));
  const [, second, third] = catalogs;
  isSlow = true;
  const asked = declare(second, "asked");
  await begun.promise;
  disconnect();
  await assert.rejects(asked, failsWith("OutcomeUnknown"));
  await Promise.all([declare(second, "a"), declare(third, "b")]);
  for (const name of ["a", "b"]) assert.ok((await second.read()).get(name));
  gate.resolve();
});

test("a worker that closes commits no longer for others, which commit themselves", async (t) => {
  const { catalogs } = await openWorkers(t, 2);
  const [first, second] = catalogs;
  const before = declare(second, "before");
  await before;
  await first.close();
  await declare(second, "after");
  assert.ok((await second.read()).get("after"));
});

test("closed catalogs keep no ports, and wait for no others", async (t) => {
  const { catalogs, connecting, closedPorts } = await openWorkers(t, 3);
  const [first, ...others] = catalogs;
  await first.close();
  // Those of a worker that still serves commit on their own.
  await declare(others[0], "last");
  for (const catalog of others) await catalog.close();
  assert.equal(connecting(), 0);
  await expect.poll(closedPorts).toBe(2);
});
