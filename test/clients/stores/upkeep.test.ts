import assert from "node:assert/strict";
import { pino } from "pino";
import { afterAll, beforeAll, describe, it } from "vitest";
import { createDirectoryBackend } from "../../../src/backends/dir/index.ts";
import { openStore } from "../../../src/backends/dir/stores/open-store.ts";
import { people, personStream } from "../../support/arrow.ts";
import { createCaller } from "../../support/caller.ts";
import type { LanceClient } from "../../support/client.ts";
import { startProgram } from "../../support/program.ts";
import { BUCKET, type StoreServer, startS3 } from "../support/store-servers.ts";

const limits = { maxUploadBytes: 2 ** 26 };

/** Leftovers of crashes, by their place in the base directory, each with a single object. */
const LEFT: Readonly<Record<string, string>> = {
  ".dropped-0123456789abcdef": "/data/1.lance",
  ".staging-000000000001ffffffffffffffffffff": "/data/1.lance",
  ".jobs/claims/0b7a9b9e-9f0c-4f0e-8d1c-0123456789ab.1": "",
  ".intents/torn.json": "",
  "0a1b2c3d_ns$half": "/data/1.lance",
  "__manifest/data/left.lance": "",
};

describe("the commands that look after a catalog, on a bucket of S3", () => {
  const root = `s3://${BUCKET}/kept`;
  let server: StoreServer;
  beforeAll(async () => {
    server = await startS3();
  });
  afterAll(() => server?.close());

  async function withClient<T>(work: (client: LanceClient) => Promise<T>): Promise<T> {
    const log = pino({ level: "silent" });
    const backend = await createDirectoryBackend({ root, storageOptions: server.options, log });
    try {
      return await work(createCaller({ backend, limits }));
    } finally {
      await backend.close();
    }
  }
  async function run<T>(command: string, ...args: readonly string[]): Promise<T> {
    const options = Object.entries(server.options).map(([key, value]) => `--storage-option=${key}=${value}`);
    const { code, stdout, stderr } = await startProgram(
      command,
      `--root=${root}`,
      "--json",
      ...args,
      ...options,
    ).ended;
    assert.equal(code, 0, stderr);
    assert.equal((stdout + stderr).includes(server.options["aws_secret_access_key"] as string), false);
    return JSON.parse(stdout) as T;
  }
  async function collect(...args: readonly string[]): Promise<Record<string, string>> {
    const found = await run<{ leftovers: { path: string; action: string }[] }>("gc", ...args);
    return Object.fromEntries(found.leftovers.map(({ path, action }) => [path, action]));
  }
  const each = (action: string) => Object.fromEntries(Object.keys(LEFT).map((path) => [path, action]));

  it("find what crashes left, and remove it", async () => {
    const { store } = await openStore(root, server.options);
    await withClient(async (client) => {
      await client.createNamespace({ id: ["ns"] });
      await client.createTable({ id: ["ns", "t"] }, personStream(people(3)));
      await client.declareTable({ id: ["declared"] });
    });
    for (const [path, object] of Object.entries(LEFT))
      await store.put(`kept/data/${path}${object}`, Buffer.from("{"));
    const young = await collect();
    assert.deepEqual(young, { ".dropped-0123456789abcdef": "would remove" }, "others are left alone");
    assert.deepEqual(await collect("--older-than=0s"), each("would remove"));
    assert.deepEqual(await collect("--older-than=0s", "--exclusive", "--delete"), each("removed"));
    assert.deepEqual(await collect("--older-than=0s"), {});
    await withClient(async (client) => {
      assert.equal((await client.countTableRows({ id: ["ns", "t"] })).count, 3n);
      assert.deepEqual((await client.listTables({ id: [] })).tables, ["declared"]);
    });
  });

  it("register the tables of a version-1 directory", async () => {
    const { store } = await openStore(root, server.options);
    await withClient(async (client) => {
      await client.createTable({ id: ["old"] }, personStream(people(2)));
      await client.deregisterTable({ id: ["old"] });
    });
    await store.delete("kept/data/old.lance/.lance-deregistered");
    const migrate = async (...args: readonly string[]) =>
      (await run<{ tables: { table: string; outcome: string }[] }>("migrate", ...args)).tables;
    const tables = [{ table: "old", location: "old.lance", outcome: "registered" }];
    assert.deepEqual(await migrate("--dry-run"), tables);
    assert.deepEqual(await migrate(), tables);
    assert.deepEqual(await migrate(), []);
    const count = await withClient((client) => client.countTableRows({ id: ["old"] }));
    assert.equal(count.count, 2n);
  });

  it("optimize tables, once and without losing a row", async () => {
    const id = ["slow"];
    await withClient(async (client) => {
      await client.createTable({ id }, personStream(people(3)));
      await client.createTableScalarIndex({ id, column: "id", indexType: "BTREE", name: "by_id" });
      for (let i = 3; i < 7; i++) await client.insertIntoTable({ id }, personStream(people(1, i)));
      await client.deleteFromTable({ id, predicate: "id = 0" });
    });
    const optimize = async (...args: readonly string[]) => {
      const { tables } = await run<{ tables: Record<string, unknown>[] }>("optimize", "slow", ...args);
      const { milliseconds, bytes_removed, files_removed, ...facts } = tables[0] as Record<string, unknown>;
      return facts;
    };
    const before = { version: 7, fragments: 5, deleted_rows: 1, unindexed_rows: 4 };
    const { before: planned, outcome } = await optimize("--dry-run");
    assert.deepEqual([outcome, planned], ["optimized", before]);
    const done = await optimize();
    assert.deepEqual([done["outcome"], done["before"], done["rows_indexed"]], ["optimized", before, 4]);
    assert.equal((done["after"] as { fragments: number }).fragments, 1);
    assert.equal((await optimize())["outcome"], "unchanged");
    await withClient(async (client) => {
      assert.equal((await client.countTableRows({ id })).count, 6n);
      assert.equal((await client.countTableRows({ id, predicate: "id = 5" })).count, 1n);
      const { numUnindexedRows } = await client.describeTableIndexStats({ id, indexName: "by_id" });
      assert.equal(numUnindexedRows, 0n);
    });
  });

  it("say that a place is empty, and touch nothing there", async () => {
    const options = Object.entries(server.options).map(([key, value]) => `--storage-option=${key}=${value}`);
    const { code, stderr } = await startProgram("gc", `--root=s3://${BUCKET}/wrong`, ...options).ended;
    assert.equal(code, 1);
    assert.equal(
      stderr,
      `lance-gateway: there is no catalog in s3://${BUCKET}/wrong; --root names the directory that a gateway serves\n`,
    );
    const { store } = await openStore(root, server.options);
    assert.equal(await store.exists("wrong"), false);
  });
});
