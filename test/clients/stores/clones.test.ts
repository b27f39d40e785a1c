import assert from "node:assert/strict";
import { pino } from "pino";
import { afterAll, beforeAll, describe, it } from "vitest";
import { createDirectoryBackend } from "../../../src/backends/dir/index.ts";
import { remoteCalls } from "../../dialects/remote-calls.ts";
import { people, personStream } from "../../support/arrow.ts";
import { startServer, type TestServer } from "../../support/server.ts";
import { BUCKET, type StoreServer, startAzure, startS3 } from "../support/store-servers.ts";

for (const [name, startStore] of Object.entries({ S3: startS3, "Azure Blob Storage": startAzure })) {
  describe(`clones of tables on ${name}`, () => {
    let store: StoreServer;
    let server: TestServer;
    beforeAll(async () => {
      store = await startStore();
      const root = `${store.scheme}://${BUCKET}/clones`;
      const log = pino({ level: "silent" });
      server = await startServer(await createDirectoryBackend({ root, storageOptions: store.options, log }));
    });
    afterAll(async () => {
      await server?.close();
      await store?.close();
    });

    it("have the rows and the indices of a version, and stay when their source is dropped", async () => {
      const { post, upload, refused } = remoteCalls(server.port);
      await upload("table/t/create/", personStream(people(6)));
      await post("table/t/create_index/", { column: "id", index_type: "BTREE" });
      await post("table/t/delete/", { predicate: "id = 1" });
      const { location, version } = await post<{ location: string; version: number }>("table/t/describe/");
      for (const [i, is_shallow] of [true, false].entries()) {
        const clone = await post(`table/copy${i}/clone`, { source_location: location, is_shallow });
        assert.equal(clone["version"], version);
      }
      await refused("TableAlreadyExists", "table/copy0/clone", { source_location: location });
      await post("table/t/drop/");
      await upload("table/copy0/insert/", personStream(people(1, 6)));
      for (const [i, rows] of [6, 5].entries()) {
        assert.equal(await post(`table/copy${i}/count_rows/`, {}), rows);
        assert.equal(await post(`table/copy${i}/count_rows/`, { predicate: "id = 5" }), 1);
        const { indexes } = await post<{ indexes: object[] }>(`table/copy${i}/index/list/`);
        assert.equal(indexes.length, 1);
      }
    });
  });
}
