import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { describe, type TestContext, test } from "vitest";
import { people, personStream } from "../../../../../test/support/arrow.ts";
import { createDiskBucket } from "../../../../../test/support/disk-bucket.ts";
import { createLocalStore } from "../../format/local-store.ts";
import type { ObjectStore } from "../../format/storage.ts";
import { createRemoteStore } from "../../stores/remote-store.ts";
import { failsWith, openClient, type TestClient, temporaryDirectory } from "../../test-support.ts";

const HIDDEN = ".lance-deregistered";

const disk = createLocalStore();
const STORES: Readonly<Record<string, ObjectStore>> = {
  "a disk": disk,
  "a bucket": { ...createRemoteStore(createDiskBucket(disk)), uriOf: disk.uriOf, keyOf: disk.keyOf },
};

const storageOf = (store: ObjectStore, root: string) => ({
  store,
  root: store.files === undefined ? store.keyOf(root) : root,
  engineOptions: {},
});

const rows = personStream(people(3));

/** Changes after which the table still has its name, and its directory no data. */
const CHANGES: Readonly<Record<string, (client: TestClient) => Promise<unknown>>> = {
  nothing: async () => {},
  "a rename to and fro": async (client) => {
    await client.call("renameTable", "t", { newTableName: "u" });
    await client.call("renameTable", "u", { newTableName: "t" });
  },
  "a deregistration and a registration": async (client) => {
    await client.call("deregisterTable", "t");
    await client.call("registerTable", "t", { location: "t.lance" });
  },
};

for (const [where, plain] of Object.entries(STORES)) {
  describe(`on ${where}`, () => {
    /** Opens two gateways on one root; the first declares `t`, and `meanwhile` runs after the row and before the mark. */
    async function declareBeside(t: TestContext, meanwhile: (other: TestClient) => Promise<unknown>) {
      const root = await temporaryDirectory(t);
      const open = (store: ObjectStore) => openClient(t, root, { storage: storageOf(store, root) });
      const other = await open(plain);
      const declarer = await open({
        ...plain,
        async move(from, to) {
          if (from.endsWith(`t.lance/${HIDDEN}`)) await meanwhile(other);
          return plain.move(from, to);
        },
      });
      return { other, root, declared: declarer.call("declareTable", "t") };
    }
    const dies = () => Promise.reject(new Error("the process ends here"));

    for (const [what, change] of Object.entries(CHANGES)) {
      for (const operation of ["insertIntoTable", "createTable"] as const) {
        test(`${operation} fills a table whose declarer ended right after the row and ${what}`, async (t) => {
          const { other, root, declared } = await declareBeside(t, dies);
          await assert.rejects(declared, failsWith("OutcomeUnknown"));
          await change(other);
          await other.upload(operation, "t", {}, rows);
          assert.equal((await other.call("countTableRows", "t")).count, 3n);
          assert.ok(!(await readdir(join(root, "data", "t.lance"))).includes(HIDDEN));
        });
      }

      test(`a declaration succeeds whose table gets rows before it is shown, after ${what}`, async (t) => {
        const { other, declared } = await declareBeside(t, async (client) => {
          await change(client);
          await client.upload("insertIntoTable", "t", {}, rows);
        });
        await declared;
        assert.equal((await other.call("countTableRows", "t")).count, 3n);
      });
    }
  });
}
