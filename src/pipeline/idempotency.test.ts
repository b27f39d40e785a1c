import assert from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { describe, it } from "vitest";
import { ann } from "../../test/fixtures/auth/principal.ts";
import { beginCall } from "../../test/support/caller.ts";
import { LanceNamespaceService } from "../gen/lance/namespace/v1/service_pb.ts";
import type { Call } from "../namespace/call/call.ts";
import { type ErrorName, isLanceError, LanceError } from "../namespace/errors.ts";
import type {
  Backend,
  EarlierCall,
  IdempotencyRecords,
  LanceNamespace,
} from "../namespace/lance-namespace.ts";
import { createService } from "./create-service.ts";

const { batchCommitTables, createTable, declareTable, insertIntoTable, listTables, registerTable } =
  LanceNamespaceService.method;

/** Records in memory. */
function createRecords(): IdempotencyRecords & { readonly calls: Map<string, EarlierCall> } {
  const calls = new Map<string, EarlierCall>();
  return {
    calls,
    async take(key, request) {
      const earlier = calls.get(key);
      if (earlier !== undefined) return earlier;
      calls.set(key, { request, state: "running" });
      return {
        keep: async (outcome, body) => void calls.set(key, { request, state: "done", body, outcome }),
        lose: async () => void calls.set(key, { request, state: "ended" }),
        release: async () => void calls.delete(key),
      };
    },
  };
}

function serviceOver(operations: Partial<LanceNamespace>, idempotency: IdempotencyRecords | undefined) {
  const backend: Backend = {
    name: "fake",
    operations,
    idempotency,
    ready: async () => true,
    close: async () => {},
  };
  return createService({ databases: new Map([[undefined, { backend, limits: { maxUploadBytes: 1_000 } }]]) });
}

const keyed = (key: string, facts: Partial<Call> = {}): Partial<Call> => ({
  ...facts,
  headers: Object.assign(Object.create(null), { "idempotency-key": key }),
});
const is = (name: ErrorName) => (error: unknown) => isLanceError(error, name);

/** Returns a function that registers a table at a location, and the number of executions. */
function registering(work: (call: Call) => Promise<void> = async () => {}, records = createRecords()) {
  const state = { executed: 0, records };
  const operations: Partial<LanceNamespace> = {
    async registerTable({ location }, call) {
      state.executed += 1;
      await work(call);
      return create(registerTable.output, { location });
    },
  };
  const service = serviceOver(operations, records);
  const register = async (key: string, location: string, facts: Partial<Call> = {}) => {
    const request = create(registerTable.input, { id: ["t"], identifier: "t", location });
    const call = beginCall(registerTable, keyed(key, facts));
    const answer = (await service.unary(registerTable, request, call)) as { location?: string };
    return { location: answer.location, replayed: call.responseHeaders["idempotency-replayed"] };
  };
  return { state, register };
}

describe("idempotency keys", () => {
  it("answer the same request with the same answer, and execute it once", async () => {
    const { state, register } = registering();
    assert.deepEqual(await register("k", "a"), { location: "a", replayed: undefined });
    assert.deepEqual(await register("k", "a"), { location: "a", replayed: "true" });
    assert.equal(state.executed, 1);
  });

  it("do not depend on the order in which a client sends properties, also inside of a commit", async () => {
    let executed = 0;
    const operations: Partial<LanceNamespace> = {
      async batchCommitTables() {
        executed += 1;
        return create(batchCommitTables.output, {});
      },
    };
    const service = serviceOver(operations, createRecords());
    const commit = (properties: Readonly<Record<string, string>>) => {
      const value = create(declareTable.input, { id: ["t"], properties });
      const request = create(batchCommitTables.input, {
        operations: [{ operation: { case: "declareTable", value } }],
      });
      return service.unary(batchCommitTables, request, beginCall(batchCommitTables, keyed("k")));
    };
    await commit({ b: "1", a: "2" });
    await commit({ a: "2", b: "1" });
    assert.equal(executed, 1);
    await assert.rejects(commit({ a: "1", b: "2" }), is("IdempotencyKeyReused"));
  });

  it("refuse another request", async () => {
    const { state, register } = registering();
    await register("k", "a");
    await assert.rejects(register("k", "b"), is("IdempotencyKeyReused"));
    await register("l", "b");
    assert.equal(state.executed, 2);
  });

  it("belong to their caller", async () => {
    const { state, register } = registering();
    await register("k", "a", { principal: ann });
    await register("k", "b", { principal: { ...ann, name: "bob" } });
    await register("k", "c", { principal: { ...ann, by: "oidc" } });
    await register("k", "d");
    assert.equal(state.executed, 4);
  });

  it("refuse a call while the first one runs, also when its client has left", async () => {
    const { promise: gate, resolve: open } = Promise.withResolvers<void>();
    const { state, register } = registering(async ({ signal, deadline }) => {
      assert.deepEqual([signal.aborted, deadline], [false, undefined]);
      await gate;
    });
    const first = register("k", "a", { signal: AbortSignal.abort(), deadline: 1 });
    await assert.rejects(register("k", "a"), is("ConcurrentModification"));
    await assert.rejects(register("k", "b"), is("IdempotencyKeyReused"));
    open();
    await first;
    assert.equal((await register("k", "a")).replayed, "true");
    assert.equal(state.executed, 1);
  });

  it("are never executed again when nobody knows how the first call ended", async () => {
    for (const name of ["ServiceUnavailable", "Internal", "DeadlineExceeded", "Cancelled"] as const) {
      const { state, register } = registering(async () => {
        throw new LanceError(name, "it may be done");
      });
      await assert.rejects(register("k", "a"), is(name));
      await assert.rejects(register("k", "a"), is("ConcurrentModification"));
      assert.equal(state.executed, 1);
    }
  });

  it("repeat an error that says what is wrong, and give the key back after one that passes", async () => {
    for (const [name, executions] of [
      ["TableAlreadyExists", 1],
      ["InvalidInput", 1],
      ["Throttling", 2],
      ["ConcurrentModification", 2],
    ] as const) {
      const { state, register } = registering(async () => {
        throw new LanceError(name, "no");
      });
      for (let attempt = 0; attempt < 2; attempt++) await assert.rejects(register("k", "a"), is(name));
      assert.equal(state.executed, executions, name);
    }
  });

  it("leave a call alone whose outcome cannot be kept, and never execute it again", async () => {
    const records = createRecords();
    const failing: typeof records = {
      ...records,
      async take(key, request) {
        const taken = await records.take(key, request);
        if ("state" in taken) return taken;
        return { ...taken, keep: () => Promise.reject(new Error("the disk is full")) };
      },
    };
    const { state, register } = registering(undefined, failing);
    await register("k", "a");
    await assert.rejects(register("k", "a"), is("ConcurrentModification"));
    assert.equal(state.executed, 1);
  });

  it("do not run a call whose key cannot be taken", async () => {
    const take = () => Promise.reject(new LanceError("ServiceUnavailable", "the storage is away"));
    const { state, register } = registering(undefined, { ...createRecords(), take });
    await assert.rejects(register("k", "a"), is("ServiceUnavailable"));
    assert.equal(state.executed, 0);
  });

  it("must be short and visible", async () => {
    const { state, register } = registering();
    for (const key of ["", "x".repeat(256), "ä", "a\tb"])
      await assert.rejects(register(key, "a"), is("InvalidInput"));
    assert.equal(state.executed, 0);
  });

  it("mean nothing to reads, and are left to backends that keep none", async () => {
    let executed = 0;
    const operations: Partial<LanceNamespace> = {
      async listTables() {
        executed += 1;
        return create(listTables.output);
      },
      async registerTable() {
        executed += 1;
        return create(registerTable.output);
      },
    };
    const reading = serviceOver(operations, createRecords());
    const proxy = serviceOver(operations, undefined);
    for (let attempt = 0; attempt < 2; attempt++) {
      await reading.unary(listTables, create(listTables.input), beginCall(listTables, keyed("k")));
      await proxy.unary(registerTable, create(registerTable.input), beginCall(registerTable, keyed("k")));
    }
    assert.equal(executed, 4);
  });

  it("keep no credentials of the storage, and no large answers", async () => {
    const records = createRecords();
    let executed = 0;
    const operations: Partial<LanceNamespace> = {
      async createTable({ id }) {
        executed += 1;
        const location = id[0] === "large" ? "x".repeat(70_000) : "a";
        return create(createTable.output, { location, storageOptions: { secret_access_key: "SECRET" } });
      },
    };
    const service = serviceOver(operations, records);
    const make = (name: string) => {
      const request = create(createTable.input, { id: [name], identifier: name });
      async function* none() {}
      const call = beginCall(createTable, { ...keyed(name), hasKnownEnd: true });
      return service.upload(createTable, request, none(), call) as Promise<{ storageOptions?: object }>;
    };
    assert.deepEqual((await make("small")).storageOptions, { secret_access_key: "SECRET" });
    assert.deepEqual((await make("small")).storageOptions, {});
    const [kept] = [...records.calls.values()];
    assert.ok(kept?.outcome !== undefined && "answer" in kept.outcome);
    assert.ok(!Buffer.from(kept.outcome.answer as Uint8Array).includes("SECRET"));
    await make("large");
    await assert.rejects(make("large"), is("ConcurrentModification"));
    assert.equal(executed, 2);
  });
});

describe("idempotency keys of uploads", () => {
  /** Returns a function that inserts a body, and what was inserted. */
  function inserting() {
    const inserted: string[] = [];
    const operations: Partial<LanceNamespace> = {
      async insertIntoTable(_, data) {
        let text = "";
        for await (const chunk of data) text += Buffer.from(chunk).toString("utf8");
        inserted.push(text);
        return create(insertIntoTable.output);
      },
    };
    const service = serviceOver(operations, createRecords());
    const insert = (body: () => AsyncIterable<Uint8Array>) => {
      const call = beginCall(insertIntoTable, { ...keyed("k"), hasKnownEnd: true });
      return service.upload(insertIntoTable, create(insertIntoTable.input), body(), call);
    };
    return { inserted, insert };
  }
  const body = (...chunks: string[]) =>
    async function* () {
      for (const chunk of chunks) yield Buffer.from(chunk);
    };

  it("compare bodies, wherever they are split", async () => {
    const { inserted, insert } = inserting();
    await insert(body("rows ", "of a table"));
    await insert(body("rows of", " a table"));
    await assert.rejects(insert(body("other rows")), is("IdempotencyKeyReused"));
    assert.deepEqual(inserted, ["rows of a table"]);
  });

  it("come back when the body breaks off", async () => {
    const { inserted, insert } = inserting();
    async function* broken() {
      yield Buffer.from("rows");
      throw new LanceError("Cancelled", "the client disconnected");
    }
    await assert.rejects(insert(broken), is("Cancelled"));
    await insert(body("rows"));
    assert.deepEqual(inserted, ["rows"]);
  });

  it("hold the body that they compare to the limit of uploads", async () => {
    const { insert } = inserting();
    await insert(body("rows"));
    await assert.rejects(insert(body("x".repeat(2_000))), is("PayloadTooLarge"));
  });
});
