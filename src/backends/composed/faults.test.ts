import assert from "node:assert/strict";
import { readdir, rename, rm, symlink } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { clone, create } from "@bufbuild/protobuf";
import { describe, test } from "vitest";
import { count, ID, openComposed } from "../../../test/fixtures/upstreams/composed.ts";
import { people, personStream } from "../../../test/support/arrow.ts";
import { beginCall } from "../../../test/support/caller.ts";
import { refused } from "../../../test/support/expect.ts";
import { BasePathSchema, ManifestSchema } from "../../gen/lance/format/table_pb.ts";
import { LanceDbService } from "../../gen/lance/gateway/v1/lancedb_pb.ts";
import { DropNamespaceBehavior } from "../../gen/lance/namespace/v1/namespace_pb.ts";
import { isLanceError, LanceError } from "../../namespace/errors.ts";
import type { LanceNamespace } from "../../namespace/lance-namespace.ts";
import { manifestKey } from "../dir/format/dataset.ts";
import { buildManifestFile, readInheritedPart } from "../dir/format/files/manifest-file.ts";
import { createLocalStore } from "../dir/format/local/local-store.ts";
import { readVersion } from "../dir/format/versions/version-files.ts";

describe("rows of an upstream's tables", () => {
  test("are those of a table that was created again, at the next read", async (t) => {
    const { client, upstream } = await openComposed(t);
    await client.createTable({ id: ID }, personStream(people(3)));
    assert.equal(await count(client), 3n);
    await upstream.dropTable({ id: ID });
    await refused("TableNotFound", client.countTableRows({ id: ID }));
    await upstream.createTable({ id: ID }, personStream(people(5)));
    assert.equal(await count(client), 5n);
  });

  test("have an unknown outcome when the upstream lacks the table before they are confirmed", async (t) => {
    const isAsked = { times: 0 };
    const { client } = await openComposed(t, (catalog) => ({
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
    const { client } = await openComposed(t, (catalog) => ({
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
    const { client } = await openComposed(t, (catalog) => ({
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
    const { as, client } = await openComposed(
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
    const { as, described } = await openComposed(t, undefined, { maxStalenessMs: 60_000 });
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

  test("are not read by a description from before a call through the gateway that changed the catalog", async (t) => {
    const { client, upstream } = await openComposed(t, undefined, { maxStalenessMs: 60_000 });
    await client.createNamespace({ id: ["n"] });
    const tables = { old: ["n", "old"], taken: ["n", "taken"], root: ID };
    for (const [rows, id] of Object.values(tables).entries()) {
      await client.createTable({ id }, personStream(people(rows + 1)));
      assert.equal(await count(client, id), BigInt(rows + 1));
    }
    // Another gateway drops the table whose name another one gets here.
    await upstream.dropTable({ id: tables.taken });
    await client.renameTable({ id: tables.old, newTableName: "taken" });
    assert.equal(await count(client, tables.taken), 1n);

    const operation = { case: "deregisterTable", value: { id: tables.root } } as const;
    await client.batchCommitTables({ operations: [{ operation }] });
    await refused("TableNotFound", client.countTableRows({ id: tables.root }));

    await client.dropNamespace({ id: ["n"], behavior: DropNamespaceBehavior.CASCADE });
    await refused("TableNotFound", client.countTableRows({ id: tables.taken }));
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
      const { as, upstream } = await openComposed(t, changed, { maxStalenessMs });
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
    const { client, described } = await openComposed(t);
    await client.createTable({ id: ID }, personStream(people(2)));
    described.length = 0;
    for (let each = 0; each < 3; each++) await count(client);
    assert.equal(described.length, 3);
  });

  test("are not read from a location that is not allowed, or that leads through a link", async (t) => {
    const { client, root, upstream } = await openComposed(t);
    await upstream.createTable({ id: ID }, personStream(people(2)));
    assert.equal(await count(client), 2n);
    const directory = join(root, "data", "t.lance");
    await upstream.createTable({ id: ["other"] }, personStream(people(9)));
    await rm(directory, { recursive: true });
    await symlink(join(root, "data", "other.lance"), directory);
    await refused("PermissionDenied", client.countTableRows({ id: ID }));
    await refused("PermissionDenied", client.insertIntoTable({ id: ID }, personStream(people(1))));

    const other = await openComposed(t, undefined, { allowedLocations: [join(root, "other")] });
    await other.upstream.createTable({ id: ID }, personStream(people(2)));
    await refused("PermissionDenied", other.client.countTableRows({ id: ID }));
    await refused("PermissionDenied", other.client.createTable({ id: ["u"] }, personStream(people(2))));
  });

  test("are not read at a version that names files outside the allowed locations", async (t) => {
    const { client, root, upstream } = await openComposed(t);
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
    const { client } = await openComposed(t);
    await client.createTable({ id: ID }, personStream(people(1)));
    const context = { "header.idempotency-key": "k1" };
    await refused("Unsupported", client.insertIntoTable({ id: ID, context }, personStream(people(1))));
    assert.equal(await count(client), 1n);
  });

  test("stage nothing and lock nothing behind a symbolic link", async (t) => {
    const { backend, client, root, upstream } = await openComposed(t);
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

  test("are described again if they were dropped while a description was on its way", async (t) => {
    const gate = Promise.withResolvers<void>();
    const asked = Promise.withResolvers<void>();
    let waits = false;
    const { client } = await openComposed(
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
