import assert from "node:assert/strict";
import { readdir, rename, rm, symlink } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { clone, create } from "@bufbuild/protobuf";
import { pino } from "pino";
import { describe, type TestContext, test } from "vitest";
import { people, personStream } from "../../../test/support/arrow.ts";
import { beginCall, createCaller, createServiceCaller } from "../../../test/support/caller.ts";
import { temporaryDirectory } from "../../../test/support/directory.ts";
import { refused } from "../../../test/support/expect.ts";
import { BasePathSchema, ManifestSchema } from "../../gen/lance/format/table_pb.ts";
import { LanceDbService } from "../../gen/lance/gateway/v1/lancedb_pb.ts";
import { CreateTableMode } from "../../gen/lance/namespace/v1/data_pb.ts";
import { LanceNamespaceService } from "../../gen/lance/namespace/v1/service_pb.ts";
import {
  DeclareTableRequestSchema,
  DeclareTableResponseSchema,
  DeregisterTableResponseSchema,
  DescribeTableResponseSchema,
} from "../../gen/lance/namespace/v1/table_pb.ts";
import { BatchCommitTablesRequestSchema } from "../../gen/lance/namespace/v1/transaction_pb.ts";
import type { Call } from "../../namespace/call/call.ts";
import { isLanceError, LanceError } from "../../namespace/errors.ts";
import type { Backend, LanceNamespace } from "../../namespace/lance-namespace.ts";
import { createService } from "../../pipeline/create-service.ts";
import { manifestKey } from "../dir/format/dataset.ts";
import { buildManifestFile, readInheritedPart } from "../dir/format/files/manifest-file.ts";
import { createLocalStore } from "../dir/format/local/local-store.ts";
import { readVersion } from "../dir/format/versions/version-files.ts";
import { createDirectoryBackend } from "../dir/index.ts";
import { createComposedBackend } from "./index.ts";

const log = pino({ level: "silent" });
const limits = { maxUploadBytes: 2 ** 26 };

/** Opens a catalog in a directory, of which a test may replace operations, and the rows of its tables. */
async function open(
  t: TestContext,
  changed: (catalog: LanceNamespace) => Partial<LanceNamespace> = () => ({}),
  options: { readonly maxStalenessMs?: number; readonly allowedLocations?: readonly string[] } = {},
) {
  const { path: root, remove } = await temporaryDirectory();
  const directory = await createDirectoryBackend({ root, log });
  const operations = directory.operations as LanceNamespace;
  const described: Call[] = [];
  const catalog: Backend = {
    name: "catalog",
    operations: {
      ...operations,
      describeTable(request, call) {
        described.push(call);
        return operations.describeTable(request, call);
      },
      ...changed(operations),
    },
    ready: async () => true,
    close: async () => {},
  };
  const backend = createComposedBackend(catalog, { log, allowedLocations: [root], ...options });
  t.onTestFinished(async () => {
    await backend.close();
    await directory.close();
    await remove();
  });
  const service = createService({ databases: new Map([[undefined, { backend, limits }]]) });
  return {
    root,
    backend,
    service,
    described,
    upstream: createCaller({ backend: directory, limits }),
    client: createCaller({ backend, limits }),
    as: (token: string) => createServiceCaller(service, { authorization: `Bearer ${token}` }),
  };
}

const ID = ["t"];
const count = async (client: Awaited<ReturnType<typeof open>>["client"], id = ID) =>
  (await client.countTableRows({ id })).count;

describe("rows of an upstream's tables", () => {
  test("are those of a table that was created again, at the next read", async (t) => {
    const { client, upstream } = await open(t);
    await client.createTable({ id: ID }, personStream(people(3)));
    assert.equal(await count(client), 3n);
    await upstream.dropTable({ id: ID });
    await refused("TableNotFound", client.countTableRows({ id: ID }));
    await upstream.createTable({ id: ID }, personStream(people(5)));
    assert.equal(await count(client), 5n);
  });

  test("are created once when the answer to the declaration is lost", async (t) => {
    let isLost = true;
    const { client } = await open(t, (catalog) => ({
      async declareTable(request, call) {
        const answer = await catalog.declareTable(request, call);
        if (!isLost) return answer;
        isLost = false;
        throw new LanceError("DeadlineExceeded", "the upstream did not answer in time");
      },
    }));
    await refused("DeadlineExceeded", client.createTable({ id: ID }, personStream(people(3))));
    await refused("TableNotFound", client.countTableRows({ id: ID }));
    await client.createTable({ id: ID }, personStream(people(3)));
    assert.equal(await count(client), 3n);
    await refused("TableAlreadyExists", client.createTable({ id: ID }, personStream(people(3))));
    assert.equal(await count(client), 3n);
  });

  test("are created by exactly one of several callers", async (t) => {
    const { client } = await open(t);
    const created = await Promise.allSettled(
      [1, 2, 3, 4, 5, 6].map((rows) => client.createTable({ id: ID }, personStream(people(rows)))),
    );
    const [winner, ...others] = created.flatMap(({ status }, at) => (status === "fulfilled" ? [at] : []));
    assert.ok(winner !== undefined);
    assert.deepEqual(others, []);
    assert.equal(await count(client), BigInt(winner + 1));
  });

  test("that are refused leave no declared table behind", async (t) => {
    const { client, upstream } = await open(t);
    await assert.rejects(client.createTable({ id: ID }, new TextEncoder().encode("no Arrow stream")));
    await refused("TableNotFound", upstream.describeTable({ id: ID }));
  });

  test("have an unknown outcome when the upstream lacks the table before they are confirmed", async (t) => {
    const isAsked = { times: 0 };
    const { client } = await open(t, (catalog) => ({
      async describeTable(request, call) {
        isAsked.times += 1;
        // The first look of the creation, the one of the insert, and then its confirmation.
        if (isAsked.times === 2)
          await catalog.dropTable(
            { ...request, $typeName: "lance.namespace.v1.DropTableRequest" } as never,
            call,
          );
        return catalog.describeTable(request, call);
      },
    }));
    await client.declareTable({ id: ID });
    isAsked.times = 0;
    await refused("OutcomeUnknown", client.insertIntoTable({ id: ID }, personStream(people(1))));
  });

  test("are not said to be refused when the upstream answers from before its last change", async (t) => {
    const isAsked = { times: 0 };
    const { client } = await open(t, (catalog) => ({
      async describeTable(request, call) {
        isAsked.times += 1;
        if (isAsked.times === 2) throw new LanceError("TableNotFound", "the table is not there yet");
        return catalog.describeTable(request, call);
      },
    }));
    await client.declareTable({ id: ID });
    isAsked.times = 0;
    await refused("OutcomeUnknown", client.insertIntoTable({ id: ID }, personStream(people(1))));
    assert.equal(await count(client), 1n);
  });

  test("are not served while the upstream fails, and are afterwards", async (t) => {
    let fails = false;
    const { client } = await open(t, (catalog) => ({
      async describeTable(request, call) {
        if (fails) throw new LanceError("ServiceUnavailable", "the upstream fails");
        return catalog.describeTable(request, call);
      },
    }));
    await client.createTable({ id: ID }, personStream(people(2)));
    fails = true;
    await refused("ServiceUnavailable", client.countTableRows({ id: ID }));
    await refused("ServiceUnavailable", client.insertIntoTable({ id: ID }, personStream(people(1))));
    fails = false;
    assert.equal(await count(client), 2n);
  });

  test("are given only to callers for whom the upstream describes the table", async (t) => {
    const { as, client } = await open(
      t,
      (catalog) => ({
        async describeTable(request, call) {
          if (call.headers["authorization"] === "Bearer mallory")
            throw new LanceError("PermissionDenied", "not yours");
          return catalog.describeTable(request, call);
        },
      }),
      { maxStalenessMs: 60_000 },
    );
    await client.createTable({ id: ID }, personStream(people(2)));
    assert.equal(await count(as("alice")), 2n);
    await refused("PermissionDenied", as("mallory").countTableRows({ id: ID }));
    await refused("PermissionDenied", as("mallory").insertIntoTable({ id: ID }, personStream(people(1))));
    assert.equal(await count(as("alice")), 2n);
  });

  test("share a description of one caller within the allowed staleness, and no other", async (t) => {
    const { as, described } = await open(t, undefined, { maxStalenessMs: 60_000 });
    const [alice, bob] = [as("alice"), as("bob")];
    await alice.createTable({ id: ID }, personStream(people(2)));
    described.length = 0;
    for (let each = 0; each < 3; each++) assert.equal(await count(alice), 2n);
    assert.equal(described.length, 1);
    assert.equal(await count(bob), 2n);
    assert.equal(described.length, 2);
    // A drop through this gateway is seen at once.
    await bob.dropTable({ id: ID });
    await refused("TableNotFound", alice.countTableRows({ id: ID }));
  });

  test.for([0, 60_000])(
    "share a description that calls need at the same time, with a staleness of %d ms",
    async (maxStalenessMs, t) => {
      const asked: string[] = [];
      const changed = (catalog: LanceNamespace): Partial<LanceNamespace> => ({
        async describeTable(request, call) {
          asked.push(call.headers["authorization"] ?? "");
          const answer = await catalog.describeTable(request, call);
          await sleep(20);
          return answer;
        },
      });
      const { as, upstream } = await open(t, changed, { maxStalenessMs });
      await as("alice").createTable({ id: ID }, personStream(people(2)));
      asked.length = 0;
      const clients = Array.from({ length: 24 }, (_, at) => as(at % 2 === 0 ? "bob" : "carol"));
      const counts = await Promise.all(clients.map((client) => count(client)));
      assert.deepEqual(new Set(counts), new Set([2n]));
      assert.deepEqual(new Set(asked), new Set(["Bearer bob", "Bearer carol"]));
      if (maxStalenessMs > 0) return assert.equal(asked.length, 2);
      assert.ok(asked.length < 16, `${asked.length} requests`);
      // Descriptions from before the drop are on their way when the call after it comes.
      const early = Promise.allSettled(clients.map((client) => count(client)));
      await sleep(5);
      await upstream.dropTable({ id: ID });
      await refused("TableNotFound", as("bob").countTableRows({ id: ID }));
      await early;
    },
  );

  test("are described for every call by default", async (t) => {
    const { client, described } = await open(t);
    await client.createTable({ id: ID }, personStream(people(2)));
    described.length = 0;
    for (let each = 0; each < 3; each++) await count(client);
    assert.equal(described.length, 3);
  });

  test("are not read from a location that is not allowed, or that leads through a link", async (t) => {
    const { client, root, upstream } = await open(t);
    await upstream.createTable({ id: ID }, personStream(people(2)));
    assert.equal(await count(client), 2n);
    const directory = join(root, "data", "t.lance");
    await upstream.createTable({ id: ["other"] }, personStream(people(9)));
    await rm(directory, { recursive: true });
    await symlink(join(root, "data", "other.lance"), directory);
    await refused("PermissionDenied", client.countTableRows({ id: ID }));
    await refused("PermissionDenied", client.insertIntoTable({ id: ID }, personStream(people(1))));

    const other = await open(t, undefined, { allowedLocations: [join(root, "other")] });
    await other.upstream.createTable({ id: ID }, personStream(people(2)));
    await refused("PermissionDenied", other.client.countTableRows({ id: ID }));
    await refused("PermissionDenied", other.client.createTable({ id: ["u"] }, personStream(people(2))));
  });

  test("are not read at a version that names files outside the allowed locations", async (t) => {
    const { client, root, upstream } = await open(t);
    await upstream.createTable({ id: ID }, personStream(people(2)));
    assert.equal(await count(client), 2n);
    const dataset = { store: createLocalStore(), root: join(root, "data", "t.lance").slice(1) };
    const addBase = async (path: string) => {
      const file = await readVersion(dataset);
      const manifest = clone(ManifestSchema, file.manifest);
      manifest.version += 1n;
      manifest.basePaths = [create(BasePathSchema, { id: 1, path })];
      const inherited = await readInheritedPart(file);
      const next = { ...manifest, transactionSection: BigInt(inherited.byteLength), transactionFile: "" };
      const bytes = buildManifestFile(inherited, new Uint8Array(), next, file.signature);
      await dataset.store.put(manifestKey(dataset, manifest.version, "V2"), bytes);
    };
    await addBase(join(root, "data", "other.lance"));
    assert.equal(await count(client), 2n);
    await addBase("/elsewhere/other.lance");
    await refused("PermissionDenied", client.countTableRows({ id: ID }));
    await refused("PermissionDenied", client.countTableRows({ id: ID, version: 3n }));
    assert.equal((await client.countTableRows({ id: ID, version: 2n })).count, 2n);
  });

  test("are refused with an idempotency key, which nobody would keep", async (t) => {
    const { client } = await open(t);
    await client.createTable({ id: ID }, personStream(people(1)));
    const context = { "header.idempotency-key": "k1" };
    await refused("Unsupported", client.insertIntoTable({ id: ID, context }, personStream(people(1))));
    assert.equal(await count(client), 1n);
  });

  test("are not created from rows with an idempotency key", async (t) => {
    const { client, upstream } = await open(t);
    const context = { "header.idempotency-key": "k1" };
    await refused("Unsupported", client.createTable({ id: ID, context }, personStream(people(1))));
    await refused("TableNotFound", upstream.describeTable({ id: ID }));
  });

  test("stage nothing and lock nothing behind a symbolic link", async (t) => {
    const { backend, client, root, upstream } = await open(t);
    await upstream.createTable({ id: ID }, personStream(people(2)));
    const elsewhere = join(root, "elsewhere");
    await rename(join(root, "data", "t.lance"), elsewhere);
    await symlink(elsewhere, join(root, "data", "t.lance"));
    const before = await readdir(elsewhere);
    const { createMultipartWrite } = LanceDbService.method;
    await assert.rejects(
      async () =>
        backend.extensions?.createMultipartWrite?.(
          create(createMultipartWrite.input, { id: ID }),
          beginCall(createMultipartWrite, { id: ID }),
        ),
      (error) => isLanceError(error, "PermissionDenied"),
    );
    const merge = client.mergeInsertIntoTable({ id: ID, on: ["id"] }, personStream(people(1)));
    await refused("PermissionDenied", merge);
    assert.deepEqual(await readdir(elsewhere), before);
  });

  test("of another table at the place of a new one are neither replaced nor shown", async (t) => {
    const { path, remove } = await temporaryDirectory();
    t.onTestFinished(remove);
    const entries = new Map<string, string>();
    const nameOf = ({ id }: Call) => id.join(".");
    const { client } = await open(
      t,
      () => ({
        async describeTable(_, call) {
          const location = entries.get(nameOf(call));
          if (location === undefined) throw new LanceError("TableNotFound", "no such table");
          return create(DescribeTableResponseSchema, { location });
        },
        async declareTable(_, call) {
          const location = join(path, `${nameOf(call)}.lance`);
          entries.set(nameOf(call), location);
          return create(DeclareTableResponseSchema, { location });
        },
        async deregisterTable(_, call) {
          entries.delete(nameOf(call));
          return create(DeregisterTableResponseSchema, {});
        },
      }),
      { allowedLocations: [path] },
    );
    await client.createTable({ id: ["x"] }, personStream(people(7)));
    await client.deregisterTable({ id: ["x"] });
    entries.set("y", join(path, "x.lance"));
    // Times of files are coarse.
    await new Promise((resolve) => setTimeout(resolve, 50));
    for (const mode of [CreateTableMode.CREATE, CreateTableMode.EXIST_OK, CreateTableMode.OVERWRITE]) {
      await refused("InvalidTableState", client.createTable({ id: ["x"], mode }, personStream(people(1))));
      await refused("TableNotFound", client.describeTable({ id: ["x"] }));
    }
    await refused("InvalidTableState", client.declareTable({ id: ["x"] }));
    await refused("TableNotFound", client.describeTable({ id: ["x"] }));
    assert.equal(await count(client, ["y"]), 7n);
    // A caller who chooses the place itself, and one whose answer is repeated, know what is there.
    await client.declareTable({ id: ["x"], location: join(path, "x.lance") });
    assert.equal(await count(client, ["x"]), 7n);
    const context = { "header.idempotency-key": "k1" };
    await client.declareTable({ id: ["x"], context });
    await client.declareTable({ id: ["z"] });
    await client.createTable({ id: ["z"] }, personStream(people(2)));
    assert.equal(await count(client, ["z"]), 2n);
  });

  test("are not reached by a writer who declares their location", async (t) => {
    const { backend, root } = await open(t);
    const operations = backend.operations as LanceNamespace;
    const location = join(root, "data", "t.lance");
    const writer = { id: ["u"], may: (action: string) => action !== "manage" };
    const { declareTable, batchCommitTables } = LanceNamespaceService.method;
    const value = create(DeclareTableRequestSchema, { id: ["u"], location });
    await assert.rejects(
      async () => operations.declareTable(value, beginCall(declareTable, writer)),
      (error) => isLanceError(error, "PermissionDenied"),
    );
    const batch = create(BatchCommitTablesRequestSchema, {
      operations: [{ operation: { case: "declareTable", value } }],
    });
    await assert.rejects(
      async () => operations.batchCommitTables(batch, beginCall(batchCommitTables, writer)),
      (error) => isLanceError(error, "PermissionDenied"),
    );
  });

  test("are described again if they were dropped while a description was on its way", async (t) => {
    const gate = Promise.withResolvers<void>();
    const asked = Promise.withResolvers<void>();
    let waits = false;
    const { client } = await open(
      t,
      (catalog) => ({
        async describeTable(request, call) {
          const answer = await catalog.describeTable(request, call);
          if (!waits) return answer;
          waits = false;
          asked.resolve();
          await gate.promise;
          return answer;
        },
      }),
      { maxStalenessMs: 60_000 },
    );
    await client.createTable({ id: ID }, personStream(people(2)));
    waits = true;
    const late = count(client).catch(() => {});
    await asked.promise;
    await client.dropTable({ id: ID });
    gate.resolve();
    await late;
    await refused("TableNotFound", client.countTableRows({ id: ID }));
  });
});
