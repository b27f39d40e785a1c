import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { Int32, Table, tableToIPC, vectorFromArray } from "apache-arrow";
import { type TestContext, test } from "vitest";
import {
  failsWith,
  openClient,
  silent,
  temporaryDirectory,
} from "../../../../../test/fixtures/dir/directory-backend.ts";
import { withParts } from "../../../../../test/fixtures/dir/with-parts.ts";
import { beginCall } from "../../../../../test/support/caller.ts";
import { CreateTableMode, CreateTableRequestSchema } from "../../../../gen/lance/namespace/v1/data_pb.ts";
import { LanceNamespaceService } from "../../../../gen/lance/namespace/v1/service_pb.ts";
import type { Catalog } from "../../catalog/catalog.ts";
import { openDirectory } from "../../open-directory.ts";
import { createCreateOperations } from "./create-table.ts";

/** Returns a stream of rows in batches of a thousand. */
function stream(count: number): Uint8Array {
  const ids = Array.from({ length: count }, (_, i) => i);
  const batches = Array.from({ length: Math.ceil(count / 1_000) }, (_, i) =>
    ids.slice(i * 1_000, (i + 1) * 1_000),
  );
  return tableToIPC(
    new Table(batches.flatMap((batch) => new Table({ id: vectorFromArray(batch, new Int32()) }).batches)),
    "stream",
  );
}

/** Opens a catalog that creates tables and calls a function before each commit. */
async function openWorkshop(t: TestContext, beforeCommit: () => Promise<void>, uploadPartBytes?: number) {
  const root = await temporaryDirectory(t);
  const client = await openClient(t, root);
  const { context, close } = await openDirectory({ root, log: silent, uploadPartBytes });
  t.onTestFinished(close);
  const catalog: Catalog = {
    ...context.catalog,
    async mutate(mutation) {
      await beforeCommit();
      return context.catalog.mutate(mutation);
    },
  };
  const watched = withParts(context, { catalog });
  const { createTable } = createCreateOperations(watched);
  return {
    base: join(root, "data"),
    client,
    async create(id: readonly string[], rows: number, mode: CreateTableMode = CreateTableMode.CREATE) {
      const call = beginCall(LanceNamespaceService.method.createTable, { id });
      const bytes = stream(rows);
      async function* pieces() {
        for (let at = 0; at < bytes.byteLength; at += 1000) yield bytes.subarray(at, at + 1000);
      }
      return createTable(create(CreateTableRequestSchema, { mode }), pieces(), call);
    },
  };
}

const tablesIn = async (base: string) =>
  (await readdir(base)).filter((name) => !name.startsWith(".") && name !== "__manifest");

test("a new table of a namespace has its data before its row", async (t) => {
  const seen: string[][] = [];
  const workshop = await openWorkshop(t, async () => {
    const [location = ""] = await tablesIn(workshop.base);
    seen.push((await readdir(join(workshop.base, location, "_versions"))).filter((name) => /^\d/.test(name)));
  });
  await workshop.client.call("createNamespace", "ns");
  await workshop.create(["ns", "t"], 3);
  assert.deepEqual(seen, [["18446744073709551614.manifest"]]);
  assert.equal((await workshop.client.call("countTableRows", "ns$t")).count, 3n);
});

test("a caller that loses the name leaves nothing, and the winner's table stays", async (t) => {
  let others = 0;
  const workshop = await openWorkshop(t, async () => {
    if (others++ === 0) await workshop.client.upload("createTable", "ns$t", {}, stream(5));
  });
  const { base, client } = workshop;
  await client.call("createNamespace", "ns");
  await assert.rejects(workshop.create(["ns", "t"], 3), failsWith("TableAlreadyExists"));
  assert.equal((await tablesIn(base)).length, 1);
  assert.equal((await client.call("countTableRows", "ns$t")).count, 5n);
});

test("a caller that may replace the winner's table does so, except with rows whose files are already moved away", async (t) => {
  for (const [partBytes, count] of [
    [undefined, 3],
    [4_000, 5_000],
  ] as const) {
    let others = 0;
    const workshop = await openWorkshop(
      t,
      async () => {
        if (others++ === 0) await workshop.client.upload("createTable", "ns$t", {}, stream(5));
      },
      partBytes,
    );
    const { client } = workshop;
    await client.call("createNamespace", "ns");
    const made = workshop.create(["ns", "t"], count, CreateTableMode.OVERWRITE);
    if (partBytes === undefined) await made;
    else await assert.rejects(made, failsWith("ConcurrentModification"));
    const left = partBytes === undefined ? count : 5;
    assert.equal((await client.call("countTableRows", "ns$t")).count, BigInt(left));
    await client.query("ns$t");
  }
});

test("a create and a declaration leave nothing behind when too many changes wait for a commit", async (t) => {
  const root = await temporaryDirectory(t);
  await (await openClient(t, root)).call("createNamespace", "ns");
  const { call, upload } = await openClient(t, root, { maxWaitingMutations: 0 });
  await assert.rejects(upload("createTable", "ns$t", {}, stream(5)), failsWith("Throttling"));
  await assert.rejects(call("declareTable", "ns$t"), failsWith("Throttling"));
  assert.deepEqual(await tablesIn(join(root, "data")), []);
});
