import assert from "node:assert/strict";
import { pino } from "pino";
import { afterAll, beforeAll, describe, it } from "vitest";
import { createDirectoryBackend } from "../../../src/backends/dir/index.ts";
import { openStore } from "../../../src/backends/dir/stores/open-store.ts";
import { storeSuite } from "../../stores/suite.ts";
import { people, personStream } from "../../support/arrow.ts";
import { createCaller } from "../../support/caller.ts";
import { BUCKET, type StoreServer, startAzure, startGcs, startS3 } from "../support/store-servers.ts";

const limits = { maxUploadBytes: 2 ** 26 };

const SERVERS = {
  "S3, served by versitygw": startS3,
  "Google Cloud Storage, served by fake-gcs-server": startGcs,
  "Azure Blob Storage, served by Azurite": startAzure,
};

for (const [name, start] of Object.entries(SERVERS)) {
  storeSuite(name, async () => {
    const server = await start();
    const open = async () => (await openStore(`${server.scheme}://${BUCKET}`, server.options)).store;
    const pair = { store: await open(), other: await open() };
    // fake-gcs-server ignores the condition of a deletion.
    return { ...pair, comparesDeletions: server.scheme !== "gs", directory: "suite", close: server.close };
  });
}

describe("a catalog in a container of Azure", () => {
  let server: StoreServer;
  beforeAll(async () => {
    server = await startAzure();
  });
  afterAll(() => server?.close());

  it("is written and read, with a long upload in parts", async () => {
    const backend = await createDirectoryBackend({
      root: `az://${BUCKET}/root`,
      storageOptions: server.options,
      uploadPartBytes: 2 ** 16,
      log: pino({ level: "silent" }),
    });
    try {
      const client = createCaller({ backend, limits });
      await client.createNamespace({ id: ["ns"] });
      const id = ["ns", "t"];
      const { location } = await client.createTable({ id }, personStream(people(20_000)));
      assert.match(location ?? "", /^az:\/\/lance\/root\/data\/\w+_ns\$t$/);
      await client.insertIntoTable({ id }, personStream(people(3)));
      assert.equal((await client.countTableRows({ id })).count, 20_003n);
      assert.equal((await client.describeTableVersion({ id })).version?.version, 2n);
      await client.dropTable({ id });
      assert.deepEqual((await client.listTables({ id: ["ns"] })).tables, []);
    } finally {
      await backend.close();
    }
  });
});
