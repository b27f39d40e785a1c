import assert from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { describe, it } from "vitest";
import { as, type Behind, callOf, createCached, METHODS } from "../../../test/fixtures/upstreams/cache.ts";
import type { Call } from "../../namespace/call/call.ts";
import { LanceError } from "../../namespace/errors.ts";

const { describeTable, describeNamespace, tableExists, countTableRows, renameTable, dropNamespace } = METHODS;

/** Returns an upstream that answers with a new version each time. */
function counting(change: (answer: object, call: Call) => object = (answer) => answer) {
  const seen: Call[] = [];
  const behind: Behind = async (_, call) => {
    seen.push(call);
    if (call.method !== describeTable) return create(call.method.output);
    return create(describeTable.output, change({ version: BigInt(seen.length) }, call) as never);
  };
  return { seen, behind };
}

async function version(answer: Promise<unknown>): Promise<number> {
  return Number(((await answer) as { version: bigint }).version);
}

describe("createDescribeCache", () => {
  it("asks again for a client that demands how new the answer is, and keeps that answer for others", async () => {
    const { behind, seen } = counting();
    const { ask } = createCached(behind);
    const demanding = (name: string, value: string) => ({ headers: { authorization: "", [name]: value } });
    const old = demanding("x-lancedb-min-timestamp", "1970-01-01T00:00:00Z");
    assert.equal(await version(ask(describeTable, ["t"])), 1);
    assert.equal(await version(ask(describeTable, ["t"], demanding("x-lancedb-min-version", "1"))), 2);
    assert.equal(await version(ask(describeTable, ["t"], demanding("x-lancedb-min-read-version", "1"))), 3);
    assert.equal(await version(ask(describeTable, ["t"], old)), 4);
    assert.equal(await version(ask(describeTable, ["t"])), 4);
    // A call on its way to the upstream may have asked too early.
    const [first, second] = await Promise.all([ask(describeTable, ["u"]), ask(describeTable, ["u"], old)]);
    assert.notEqual(first, second);
    assert.equal(seen.length, 6);
  });

  it("uses an answer until its time is over, and says so", async () => {
    const { behind } = counting();
    const { ask, advance } = createCached(behind);
    const [first, second] = [callOf(describeTable, ["t"]), callOf(describeTable, ["t"])];
    assert.equal(await version(ask(describeTable, ["t"], first)), 1);
    advance(999);
    assert.equal(await version(ask(describeTable, ["t"], second)), 1);
    assert.deepEqual([first.decisions, second.decisions], [["cache_miss"], ["cache_hit"]]);
    advance(1);
    assert.equal(await version(ask(describeTable, ["t"])), 2);
  });

  it("keeps the answers of principals, requests and operations apart", async () => {
    const { behind, seen } = counting();
    const { ask } = createCached(behind);
    assert.equal(await version(ask(describeTable, ["t"], as("a"))), 1);
    assert.equal(await version(ask(describeTable, ["t"], as("b"))), 2);
    assert.equal(await version(ask(describeTable, ["t"], as("a"), { version: 3n })), 3);
    assert.equal(await version(ask(describeTable, ["u"], as("a"))), 4);
    assert.equal(await version(ask(describeTable, ["t"], as("a"), { context: { mode: "x" } })), 5);
    await ask(tableExists, ["t"], as("a"));
    await ask(describeNamespace, ["t"], as("a"));
    await ask(countTableRows, ["t"], as("a"));
    await ask(countTableRows, ["t"], as("a"));
    assert.equal(seen.length, 9);
    assert.equal(await version(ask(describeTable, ["t"], as("a"))), 1);
    assert.equal(await version(ask(describeTable, ["t"], as("b"))), 2);
  });

  it("gives everybody an answer of his own, with the headers that last", async () => {
    const { behind } = counting((answer, { responseHeaders }) => {
      Object.assign(responseHeaders, { etag: '"e"', "server-timing": "db;dur=3" });
      return { ...answer, context: { "header.server-timing": "db;dur=3", "header.etag": '"e"', note: "n" } };
    });
    const { ask } = createCached(behind);
    const [asking, reusing] = [callOf(describeTable, ["t"]), callOf(describeTable, ["t"])];
    const first = (await ask(describeTable, ["t"], asking)) as { context?: object; properties?: object };
    assert.deepEqual(asking.responseHeaders, { etag: '"e"', "server-timing": "db;dur=3" });
    Object.assign(first.properties as object, { changed: "by its reader" });
    const second = (await ask(describeTable, ["t"], reusing)) as typeof first;
    assert.deepEqual(reusing.responseHeaders, { etag: '"e"' });
    assert.deepEqual(second.context, { "header.etag": '"e"', note: "n" });
    assert.deepEqual(second.properties, {});
  });

  it("asks once for all who wait, and goes on when one of them leaves", async () => {
    const held = Promise.withResolvers<void>();
    const { behind, seen } = counting();
    const orphaned: string[] = [];
    const behindHeld: Behind = async (request, call) => {
      await held.promise;
      call.signal.throwIfAborted();
      call.note("retry");
      return behind(request, call);
    };
    const { ask } = createCached(behindHeld, { noteDecision: (decision) => orphaned.push(decision) });
    const leaving = new AbortController();
    const left = ask(describeTable, ["t"], { signal: leaving.signal });
    const staying = [ask(describeTable, ["t"]), ask(describeTable, ["t"])];
    await Promise.resolve();
    leaving.abort(new LanceError("Cancelled", "gone"));
    await assert.rejects(left, { message: "gone" });
    held.resolve();
    assert.deepEqual(await Promise.all(staying.map(version)), [1, 1]);
    assert.equal(seen.length, 1);
    assert.deepEqual(orphaned, ["retry", "cache_miss"]);
  });

  it("ends the upstream's call when the last who waits has left, and forgets it", async () => {
    const signals: AbortSignal[] = [];
    const { ask } = createCached(async (_, { signal }) => {
      signals.push(signal);
      await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
      throw signal.reason;
    });
    const leaving = new AbortController();
    const waiting = [1, 2].map(() => ask(describeTable, ["t"], { signal: leaving.signal }));
    leaving.abort(new LanceError("Cancelled", "gone"));
    for (const each of waiting) await assert.rejects(each, { message: "gone" });
    assert.deepEqual(
      signals.map(({ aborted }) => aborted),
      [true],
    );
    void ask(describeTable, ["t"], { signal: AbortSignal.timeout(1) }).catch(() => {});
    assert.equal(signals.length, 2);
  });

  it("waits with nobody who has less time", async () => {
    const { behind, seen } = counting();
    const { ask } = createCached(behind);
    const deadline = Date.now() + 60_000;
    const asked = [deadline, deadline + 1, deadline, undefined].map((each) =>
      version(ask(describeTable, ["t"], { deadline: each })),
    );
    assert.deepEqual(await Promise.all(asked), [1, 2, 2, 3]);
    assert.equal(seen.length, 3);
  });

  it("keeps no failure, and tells it to all who wait", async () => {
    let asked = 0;
    const { ask } = createCached(async () => {
      asked += 1;
      await Promise.resolve();
      throw new LanceError("TableNotFound", "table t does not exist");
    });
    const both = [ask(describeTable, ["t"]), ask(describeTable, ["t"])];
    for (const each of both) await assert.rejects(each, { message: "table t does not exist" });
    assert.equal(asked, 1);
    await assert.rejects(ask(describeTable, ["t"]));
    assert.equal(asked, 2);
  });

  it("asks the upstream again for a client that bypasses the cache", async () => {
    const { behind } = counting();
    const { ask } = createCached(behind);
    await ask(describeTable, ["t"]);
    const anew = ask(describeTable, ["t"], { headers: { authorization: "", "cache-control": "no-cache" } });
    assert.equal(await version(anew), 2);
    assert.equal(await version(ask(describeTable, ["t"])), 2);
  });

  it("asks whether an answer with an entity tag still holds", async () => {
    let current = "v1";
    const { behind, seen } = counting((answer, { validation }) => {
      if (validation?.known === current) Object.assign(validation, { holds: true });
      else Object.assign(validation as object, { etag: current });
      return answer;
    });
    const { ask, advance } = createCached(behind);
    await ask(describeTable, ["t"]);
    advance(1000);
    const revalidating = callOf(describeTable, ["t"]);
    assert.equal(await version(ask(describeTable, ["t"], revalidating)), 1);
    assert.deepEqual(revalidating.decisions, ["cache_revalidated"]);
    advance(999);
    assert.equal(await version(ask(describeTable, ["t"])), 1);
    assert.equal(seen.length, 2);
    advance(1);
    current = "v2";
    assert.equal(await version(ask(describeTable, ["t"])), 3);
  });

  it("keeps an answer no longer than the upstream says", async () => {
    const { behind } = counting((answer, { validation, headers }) => {
      Object.assign(validation as object, { cacheControl: headers["authorization"] });
      return answer;
    });
    const { ask, advance } = createCached(behind);
    for (const [cacheControl, freshMs] of Object.entries({
      "no-store": 0,
      "private, max-age=0": 0,
      "max-age=0.5": 0,
      "max-age=600": 1000,
    })) {
      const before = await version(ask(describeTable, ["t"], as(cacheControl)));
      advance(Math.max(0, freshMs - 1));
      const after = await version(ask(describeTable, ["t"], as(cacheControl)));
      assert.equal(after === before, freshMs > 0, cacheControl);
    }
  });

  it("hands out no credentials that expire within a minute, or that do not say when", async () => {
    const { behind } = counting((answer, { headers }) => ({
      ...answer,
      storageOptions: JSON.parse(headers["authorization"] ?? ""),
    }));
    const { ask } = createCached(behind, { ttlMs: 3_600_000 });
    const expiring = (ms: number) => ({ aws_session_token: "x", expires_at_millis: String(Date.now() + ms) });
    const cases = [
      [{ aws_region: "eu-north-1" }, true],
      [{ aws_session_token: "x" }, false],
      [{ azure_storage_sas_key: "x" }, false],
      [expiring(59_000), false],
      [expiring(120_000), true],
      [{ aws_session_token: "x", expires_at_millis: "soon" }, false],
    ] as const;
    for (const [storageOptions, kept] of cases) {
      const caller = as(JSON.stringify(storageOptions));
      const before = await version(ask(describeTable, ["t"], caller));
      const after = await version(ask(describeTable, ["t"], caller));
      assert.equal(after === before, kept, JSON.stringify(storageOptions));
    }
  });

  it("forgets the credentials of an answer with a tag before they expire", async () => {
    const expiry = Date.now() + 70_000;
    const { behind, seen } = counting((answer, { validation }) => {
      Object.assign(validation as object, { etag: "v1", holds: validation?.known === "v1" });
      return { ...answer, storageOptions: { expires_at_millis: String(expiry) } };
    });
    const { ask, advance } = createCached(behind, { ttlMs: 1000 });
    await ask(describeTable, ["t"]);
    advance(5000);
    assert.equal(await version(ask(describeTable, ["t"])), 1);
    advance(10_001);
    assert.equal(await version(ask(describeTable, ["t"])), 3);
    assert.equal(seen.at(-1)?.validation?.known, undefined);
  });

  it("keeps only so many answers, those that were used last", async () => {
    const { behind } = counting();
    const { ask } = createCached(behind, { maxEntries: 2 });
    for (const name of ["a", "b"]) await ask(describeTable, [name]);
    await ask(describeTable, ["a"]);
    await ask(describeTable, ["c"]);
    assert.equal(await version(ask(describeTable, ["a"])), 1);
    assert.equal(await version(ask(describeTable, ["b"])), 4);
  });

  it("keeps only so many bytes", async () => {
    const { behind } = counting((answer) => ({ ...answer, location: "x".repeat(600) }));
    const { ask } = createCached(behind, { maxBytes: 1000 });
    for (const name of ["a", "b"]) await ask(describeTable, [name]);
    assert.equal(await version(ask(describeTable, ["b"])), 2);
    assert.equal(await version(ask(describeTable, ["a"])), 3);
  });

  it("forgets what a call may change, also if that fails", async () => {
    const { behind } = counting();
    const { ask } = createCached(async (request, call) => {
      if (call.method === dropNamespace) throw new LanceError("ServiceUnavailable", "who knows");
      return behind(request, call);
    });
    const first = await version(ask(describeTable, ["n", "t"]));
    const other = await version(ask(describeTable, ["m", "t"]));
    await assert.rejects(ask(dropNamespace, ["n"]));
    assert.notEqual(await version(ask(describeTable, ["n", "t"])), first);
    assert.equal(await version(ask(describeTable, ["m", "t"])), other);
  });

  it("forgets both names of a renamed table", async () => {
    const { behind } = counting();
    const { ask } = createCached(behind);
    const ids = [
      ["n", "old"],
      ["n", "new"],
      ["m", "new"],
    ];
    const describeAll = () => Promise.all(ids.map((id) => version(ask(describeTable, id))));
    const before = await describeAll();
    await ask(renameTable, ["n", "old"], {}, { newTableName: "new", newNamespaceId: ["m"] });
    const after = await describeAll();
    assert.deepEqual(
      after.map((each, index) => each === before[index]),
      [false, true, false],
    );
  });

  it("does not keep what was in flight while a call wrote", async () => {
    const held: (() => void)[] = [];
    const { behind } = counting();
    const { ask } = createCached(async (request, call) => {
      if (call.method === describeTable) await new Promise<void>((resolve) => held.push(resolve));
      return behind(request, call);
    });
    const before = ask(describeTable, ["t"]);
    await ask(renameTable, ["t"], {}, { newTableName: "u" });
    // A caller that asks now must not get the answer of the earlier request.
    const after = ask(describeTable, ["t"]);
    assert.equal(held.length, 2);
    for (const release of held) release();
    const [old, current] = await Promise.all([version(before), version(after)]);
    assert.ok(old < current);
    assert.equal(await version(ask(describeTable, ["t"])), current);
  });
});
