import assert from "node:assert/strict";
import { create, type DescMethodUnary, type Message } from "@bufbuild/protobuf";
import { describe, it, onTestFinished, vi } from "vitest";
import { beginCall } from "../../../test/support/caller.ts";
import { fakeBackend } from "../../../test/support/server.ts";
import { LanceDbService } from "../../gen/lance/gateway/v1/lancedb_pb.ts";
import { LanceNamespaceService } from "../../gen/lance/namespace/v1/service_pb.ts";
import type { Principal } from "../../namespace/call/principal.ts";
import { isLanceError, LanceError } from "../../namespace/errors.ts";
import { compose, type Interceptor, type Next } from "../call/interceptor.ts";
import { serviceOf } from "../create-service.ts";
import { audit } from "./audit.ts";

const { createTable, describeTable, queryTable, renameTable, tableExists } = LanceNamespaceService.method;
const { batchCommitTables, createMaterializedView, declareTable, registerTable } =
  LanceNamespaceService.method;
const { cloneTable } = LanceDbService.method;
const PRINCIPAL: Principal = {
  by: "api-key",
  name: "etl",
  credentialId: "0123456789ab",
  role: "writer",
  groups: ["SECRET"],
  claims: { email: "SECRET" },
};

function audited(last: Next, { failing = [] as readonly number[], steps = [] as Interceptor[] } = {}) {
  const lines: string[] = [];
  let writes = 0;
  const trail = {
    requireWritable() {},
    async write(line: string) {
      writes += 1;
      if (failing.includes(writes)) throw new LanceError("ServiceUnavailable", "the disk is full");
      lines.push(line);
    },
  };
  const service = serviceOf(compose([audit(trail), ...steps], last));
  return { service, lines, entries: () => lines.map((line) => JSON.parse(line)) };
}

const admitting =
  (answer: () => Message): Next =>
  async (call) => {
    call.admitted = true;
    return answer() as never;
  };
const described = admitting(() => create(describeTable.output));
const isFull = (error: unknown) => isLanceError(error, "ServiceUnavailable");

describe("the audit log of calls", () => {
  it("says who did what, from where, on which objects, and with which result", async () => {
    const { service, entries } = audited(admitting(() => create(renameTable.output)));
    const request = create(renameTable.input, { newTableName: "new", newNamespaceId: ["b"] });
    const facts = { id: ["a", "old"], database: "red", principal: PRINCIPAL, peer: "192.0.2.1" };
    await service.unary(renameTable, request, beginCall(renameTable, { ...facts, requestId: "r1" }));
    const [{ time, ms, ...rest }] = entries();
    assert.ok(Math.abs(Date.parse(time) - Date.now()) < 60_000 && ms >= 0);
    assert.deepEqual(rest, {
      ...{ stage: "end", request: "r1", principal: "etl", by: "api-key", credential: "0123456789ab" },
      ...{ peer: "192.0.2.1", protocol: "grpc", operation: "RenameTable", action: "manage" },
      ...{ database: "red", object: "a$old", objects: ["b$new"], allowed: true, outcome: "OK" },
    });
  });

  it("names the tables from which a call takes rows, and the locations that it gives to a table", async () => {
    const backend = { ...fakeBackend({}), sourcesOf: () => [["b", "source"]] };
    const databases = new Map([[undefined, { backend, limits: { maxUploadBytes: 1 } }]]);
    const objectsOf = async (method: DescMethodUnary, init: object) => {
      const lines: string[] = [];
      const trail = { requireWritable() {}, write: async (line: string) => void lines.push(line) };
      const last = admitting(() => create(method.output));
      const service = serviceOf(compose([audit(trail, databases)], last));
      await service.unary(method, create(method.input, init as never), beginCall(method, { id: ["a", "t"] }));
      return JSON.parse(lines[0] ?? "").objects;
    };
    assert.deepEqual(await objectsOf(cloneTable, { id: ["a", "t"], sourceLocation: "b$source" }), [
      "b$source",
    ]);
    assert.deepEqual(await objectsOf(createMaterializedView, { sourceQuery: "…" }), ["b$source"]);
    assert.deepEqual(await objectsOf(registerTable, { location: "b/source.lance" }), ["b/source.lance"]);
    const location = "s3://SECRET@bucket/b?signature=SECRET";
    assert.deepEqual(await objectsOf(declareTable, { location }), ["s3://bucket/b"]);
    const operations = [{ operation: { case: "declareTable", value: { id: ["a", "t"], location: "b" } } }];
    assert.deepEqual(await objectsOf(batchCommitTables, { operations }), ["a$t", "b"]);
  });

  it("reads the tables of a commit as the gateway does, whatever delimiter the caller chooses", async () => {
    const { service, entries } = audited(admitting(() => create(batchCommitTables.output)));
    const named = (value: object) => ({ operation: { case: "deregisterTable", value } });
    const request = create(batchCommitTables.input, {
      delimiter: "ee",
      operations: [
        named({ identifier: "teameepeople" }),
        named({ identifier: "team.people", delimiter: "." }),
        named({ identifier: "no..name", delimiter: "." }),
      ],
    } as never);
    await service.unary(batchCommitTables, request, beginCall(batchCommitTables));
    assert.deepEqual(entries()[0].objects, ["team$people", "team$people", "no..name"]);
  });

  it("names the first thousand tables of a commit, and counts the others", async () => {
    const { service, entries } = audited(admitting(() => create(batchCommitTables.output)));
    const operations = Array.from({ length: 1_500 }, (_, i) => ({
      operation: { case: "deregisterTable", value: { identifier: `t${i}` } },
    }));
    const request = create(batchCommitTables.input, { operations } as never);
    await service.unary(batchCommitTables, request, beginCall(batchCommitTables));
    const [{ objects, moreObjects }] = entries();
    assert.deepEqual([objects.length, objects.at(-1), moreObjects], [1_000, "t999", 500]);
  });

  it("has the time, the caller and the operation of each call", async () => {
    vi.useFakeTimers({ toFake: ["Date"] });
    onTestFinished(() => void vi.useRealTimers());
    const { service, entries } = audited(described);
    const callers = [PRINCIPAL, { ...PRINCIPAL, name: "other" }, PRINCIPAL, undefined];
    for (const [at, principal] of callers.entries()) {
      vi.setSystemTime(at);
      const method = at < 2 ? describeTable : tableExists;
      await service.unary(method, create(method.input as never), beginCall(method, { principal }));
    }
    assert.deepEqual(
      entries().map(({ time, principal, operation, action }) => [time, principal, operation, action]),
      [
        ["1970-01-01T00:00:00.000Z", "etl", "DescribeTable", "describe"],
        ["1970-01-01T00:00:00.001Z", "other", "DescribeTable", "describe"],
        ["1970-01-01T00:00:00.002Z", "etl", "TableExists", "describe"],
        ["1970-01-01T00:00:00.003Z", undefined, "TableExists", "describe"],
      ],
    );
  });

  it("is written before the answer goes out", async () => {
    const { promise: written, resolve: write } = Promise.withResolvers<void>();
    const steps = [audit({ requireWritable() {}, write: () => written })];
    const service = serviceOf(compose(steps, described));
    let answered = false;
    const answer = service
      .unary(describeTable, create(describeTable.input), beginCall(describeTable))
      .then(() => {
        answered = true;
      });
    await new Promise(setImmediate);
    assert.equal(answered, false);
    write();
    await answer;
  });

  it("tells a call that the gateway refused from one that failed", async () => {
    const refuse: Interceptor = () => {
      throw new LanceError("PermissionDenied", "no");
    };
    const refused = audited(described, { steps: [refuse] });
    const failed = audited(async (call) => {
      call.admitted = true;
      throw new LanceError("TableNotFound", "it is missing");
    });
    for (const { service } of [refused, failed]) {
      const call = service.unary(describeTable, create(describeTable.input), beginCall(describeTable));
      await assert.rejects(call, LanceError);
    }
    const facts = [refused, failed].map(({ entries }) => {
      const [{ allowed, outcome, code }] = entries();
      return { allowed, outcome, code };
    });
    assert.deepEqual(facts, [
      { allowed: false, outcome: "PermissionDenied", code: 15 },
      { allowed: true, outcome: "TableNotFound", code: 4 },
    ]);
  });

  it("tells the refusal of a caller who has proved nothing from all others", async () => {
    const unproven: boolean[] = [];
    const write = async (_line: string, isUnproven: boolean) => void unproven.push(isUnproven);
    const steps = [audit({ requireWritable() {}, write })];
    const call = async (last: Next, principal?: Principal) => {
      const request = create(describeTable.input);
      const service = serviceOf(compose(steps, last));
      await service.unary(describeTable, request, beginCall(describeTable, { principal })).catch(() => {});
    };
    const refuse: Next = async () => {
      throw new LanceError("Unauthenticated", "no");
    };
    const fail: Next = async (call) => {
      call.admitted = true;
      throw new LanceError("TableNotFound", "it is missing");
    };
    for (const last of [refuse, fail, described]) {
      await call(last);
      await call(last, PRINCIPAL);
    }
    assert.deepEqual(unproven, [true, false, false, false, false, false]);
  });

  it("fails a call whose line cannot be written", async () => {
    const { service } = audited(described, { failing: [1] });
    const call = service.unary(describeTable, create(describeTable.input), beginCall(describeTable));
    await assert.rejects(call, isFull);
  });

  it("has a line before the first message of a download, and a line at its end", async () => {
    const left: string[] = [];
    async function* messages() {
      try {
        yield create(queryTable.output);
        yield create(queryTable.output);
      } finally {
        left.push("ended");
      }
    }
    const last: Next = admitting(() => messages() as never);
    const ask = (service: ReturnType<typeof audited>["service"]) =>
      service.download(queryTable, create(queryTable.input), beginCall(queryTable));

    const whole = audited(last);
    const seen: number[] = [];
    for await (const _ of ask(whole.service)) seen.push(whole.lines.length);
    assert.deepEqual(seen, [1, 1]);
    const cut = audited(last);
    for await (const _ of ask(cut.service)) break;
    const facts = [whole, cut].map(({ entries }) => entries().map(({ stage, outcome }) => [stage, outcome]));
    assert.deepEqual(facts, [
      [
        ["begin", "OK"],
        ["end", "OK"],
      ],
      [
        ["begin", "OK"],
        ["end", "Cancelled"],
      ],
    ]);

    const full = audited(last, { failing: [1] });
    const read = async () => {
      for await (const _ of ask(full.service)) assert.fail("a message goes out without its line");
    };
    await assert.rejects(read, isFull);
    assert.deepEqual(
      full.entries().map(({ stage, outcome }) => [stage, outcome]),
      [["end", "ServiceUnavailable"]],
    );
    assert.equal(left.length, 3);
  });

  it("keeps names in their line, whatever characters they have", async () => {
    const { service, lines } = audited(described);
    const name = 'a\n{"allowed":true}\r\u001b[2K\u0085\u2028\u202etxt';
    const call = beginCall(describeTable, { id: [name], principal: { ...PRINCIPAL, name } });
    await service.unary(describeTable, create(describeTable.input), call);
    const [line = ""] = lines;
    assert.match(line, /^[\x20-\x7e]+$/);
    assert.deepEqual([JSON.parse(line).object, JSON.parse(line).principal], [name, name]);
  });

  it("has no credential, no header and no part of a body", async () => {
    const { service, lines } = audited(admitting(() => create(createTable.output)));
    const secrets = { headers: { "x-api-key": "SECRET", cookie: "SECRET" }, context: { note: "SECRET" } };
    const identity = { apiKey: "SECRET", authToken: "SECRET" };
    const request = create(createTable.input, { identity, properties: { note: "SECRET" } });
    async function* data() {
      yield Buffer.from("SECRET");
    }
    const call = beginCall(createTable, { ...secrets, identity, principal: PRINCIPAL });
    await service.upload(createTable, request, data(), call);
    assert.equal(lines.length, 1);
    assert.doesNotMatch(lines[0] ?? "", /SECRET/);
  });

  it("bounds the names of a request that was refused", async () => {
    const { service, lines } = audited(async () => {
      throw new LanceError("InvalidInput", "too long");
    });
    const request = create(renameTable.input, { newTableName: "x".repeat(1_000_000), newNamespaceId: ["b"] });
    await assert.rejects(service.unary(renameTable, request, beginCall(renameTable)), LanceError);
    assert.ok((lines[0] ?? "").length < 1_000);
  });
});
