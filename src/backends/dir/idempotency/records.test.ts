import assert from "node:assert/strict";
import { mkdir } from "node:fs/promises";
import { describe, expect, it, type TestContext } from "vitest";
import { failsWith, silent, temporaryDirectory } from "../../../../test/fixtures/dir/directory-backend.ts";
import { LanceError } from "../../../namespace/errors.ts";
import { isEarlier, type TakenKey } from "../../../namespace/lance-namespace.ts";
import { createLocalStore } from "../format/local/local-store.ts";
import { listNames, type ObjectStore } from "../format/storage.ts";
import { createIdempotencyRecords, IDEMPOTENCY_DIRECTORY } from "./records.ts";

const DAY = 24 * 60 * 60 * 1000;
const NOON = 20_000 * DAY + DAY / 2;

async function storeFor(t: TestContext): Promise<ObjectStore> {
  const path = await temporaryDirectory(t);
  await mkdir(path, { recursive: true });
  return createLocalStore(path);
}

/** Returns the records of a server, whose clock shows what `clock.time` says. */
function serverOn(store: ObjectStore, time = NOON) {
  const clock = { time, now: async () => clock.time };
  return { clock, records: createIdempotencyRecords({ base: "", store, clock, log: silent }) };
}

function taken(result: Awaited<ReturnType<ReturnType<typeof serverOn>["records"]["take"]>>): TakenKey {
  assert.ok(!isEarlier(result), "the key is taken");
  return result;
}

describe("records of idempotency keys", () => {
  it("give a key to a single call, and tell the others how far it is", async (t) => {
    const store = await storeFor(t);
    const [one, other] = [serverOn(store).records, serverOn(store).records];
    const results = await Promise.all([one, other, one, other].map(({ take }) => take("k", "request")));
    const winners = results.filter((result) => !isEarlier(result));
    assert.equal(winners.length, 1);
    assert.deepEqual(await other.take("k", "request"), { request: "request", state: "running" });
    await taken(winners[0] as TakenKey).keep({ answer: Buffer.from([1, 2]) }, "body");
    const kept = {
      request: "request",
      state: "done",
      body: "body",
      outcome: { answer: Buffer.from([1, 2]) },
    };
    assert.deepEqual(await other.take("k", "another"), kept);
    taken(await other.take("l", "request"));
  });

  it("keep errors, and answers that are too large to keep", async (t) => {
    const { records } = serverOn(await storeFor(t));
    const error = { kind: "TableNotFound", message: "gone" } as const;
    await taken(await records.take("k", "r")).keep({ error }, undefined);
    await taken(await records.take("l", "r")).keep({ answer: undefined }, undefined);
    const found = [await records.take("k", "r"), await records.take("l", "r")];
    assert.deepEqual(
      found.map((each) => isEarlier(each) && each.outcome),
      [{ error }, { answer: undefined }],
    );
  });

  it("that are damaged name their file", async (t) => {
    const store = await storeFor(t);
    for (const text of ["", "{", "null", "{}"]) {
      await store.put(`${IDEMPOTENCY_DIRECTORY}/${NOON / DAY - 0.5}/k`, Buffer.from(text));
      const taking = serverOn(store).records.take("k", "r");
      await assert.rejects(taking, (e: Error) => failsWith("DataLoss")(e) && /^k /.test(e.message), text);
    }
  });

  it("give a key again that was given back, and never one whose call was lost", async (t) => {
    const { records } = serverOn(await storeFor(t));
    await taken(await records.take("k", "r")).release();
    await taken(await records.take("k", "r")).lose();
    assert.deepEqual(await records.take("k", "r"), { request: "r", state: "ended" });
  });

  it("say that a call whose process has ended has no known outcome", async (t) => {
    const store = await storeFor(t);
    const { records } = serverOn(store);
    taken(await records.take("k", "r"));
    const key = `${IDEMPOTENCY_DIRECTORY}/20000/k`;
    const record = JSON.parse(Buffer.from((await store.get(key)) as Uint8Array).toString("utf8"));
    // Larger than any number of a process.
    record.owner = { ...record.owner, process: "another", pid: 2 ** 22 + 1 };
    await store.put(key, Buffer.from(JSON.stringify(record)));
    assert.deepEqual(await records.take("k", "r"), { request: "r", state: "ended" });
  });

  it("last for a day and are gone after two", async (t) => {
    const store = await storeFor(t);
    const { records, clock } = serverOn(store);
    await taken(await records.take("k", "r")).keep({ answer: undefined }, undefined);
    clock.time = NOON + DAY;
    assert.ok(isEarlier(await records.take("k", "r")));
    clock.time = NOON + 2 * DAY;
    taken(await records.take("k", "r"));
    await expect.poll(() => listNames(store, IDEMPOTENCY_DIRECTORY)).not.toContain("20000");
  });

  it("give a key to no more than one call when servers do not agree on the day", async (t) => {
    const store = await storeFor(t);
    const midnight = 20_001 * DAY;
    const servers = [midnight - 1, midnight + 1, midnight - 1000, midnight].map(
      (time) => serverOn(store, time).records,
    );
    for (let round = 0; round < 10; round++) {
      const results = await Promise.all(servers.map(({ take }) => take(`k${round}`, "r")));
      assert.ok(results.filter((result) => !isEarlier(result)).length <= 1);
    }
    taken(await (servers[0] as (typeof servers)[0]).take("last", "r"));
    assert.ok(isEarlier(await (servers[1] as (typeof servers)[0]).take("last", "r")));
  });

  it("count for as long as before when the storage's clock is set back", async (t) => {
    const store = await storeFor(t);
    const { records, clock } = serverOn(store);
    taken(await records.take("k", "r"));
    clock.time = NOON - 3 * DAY;
    assert.ok(isEarlier(await records.take("k", "r")));
    assert.ok(isEarlier(await serverOn(store, clock.time).records.take("k", "r")));
    taken(await records.take("l", "r"));
    clock.time = NOON;
    assert.ok(isEarlier(await records.take("k", "r")));
  });

  it("do not let a call run whose record may be that of a day that is over", async (t) => {
    const store = await storeFor(t);
    const { records, clock } = serverOn(store);
    const put = store.putIfAbsent;
    // The process sleeps for three days before its record is written.
    store.putIfAbsent = (...args) => {
      store.putIfAbsent = put;
      clock.time = NOON + 3 * DAY;
      return put(...args);
    };
    taken(await records.take("k", "r"));
    assert.ok((await store.get(`${IDEMPOTENCY_DIRECTORY}/20003/k`)) !== undefined);
    assert.equal(await store.get(`${IDEMPOTENCY_DIRECTORY}/20000/k`), undefined);
  });

  it("give a key again whose call could not begin because the storage failed", async (t) => {
    const files = await storeFor(t);
    let reads = 0;
    const failing: ObjectStore = {
      ...files,
      async get(key) {
        // The look at the day before, after the record of the call was created.
        if (++reads === 1) throw new LanceError("ServiceUnavailable", "the storage does not answer");
        return files.get(key);
      },
    };
    const { records } = serverOn(failing);
    await assert.rejects(records.take("k", "r"), failsWith("ServiceUnavailable"));
    taken(await records.take("k", "r"));
  });

  it("give a key again whose record was created although the storage failed", async (t) => {
    const files = await storeFor(t);
    let puts = 0;
    const failing: ObjectStore = {
      ...files,
      async putIfAbsent(key, bytes) {
        const created = await files.putIfAbsent(key, bytes);
        if (++puts === 1) throw new LanceError("ServiceUnavailable", "the answer is lost");
        return created;
      },
    };
    const { records } = serverOn(failing);
    await assert.rejects(records.take("k", "r"), failsWith("ServiceUnavailable"));
    taken(await records.take("k", "r"));
  });

  it("do not say for ever that a call runs whose outcome could not be kept", async (t) => {
    const files = await storeFor(t);
    const full: ObjectStore = {
      ...files,
      async put() {
        throw new LanceError("ServiceUnavailable", "the storage is full");
      },
    };
    const { records } = serverOn(full);
    const key = taken(await records.take("k", "r"));
    assert.deepEqual(await records.take("k", "r"), { request: "r", state: "running" });
    await assert.rejects(key.keep({ answer: undefined }, undefined), failsWith("ServiceUnavailable"));
    assert.deepEqual(await records.take("k", "r"), { request: "r", state: "ended" });
  });
});
