import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { describe, type TestContext, test } from "vitest";
import { ended, leaveIntent, leaveMark, leaveVerdict } from "../../../../../test/fixtures/dir/batch.ts";
import {
  failsWith,
  openClient,
  silent,
  type TestClient,
  temporaryDirectory,
} from "../../../../../test/fixtures/dir/directory-backend.ts";
import { people, personStream } from "../../../../../test/support/arrow.ts";
import { createDiskBucket } from "../../../../../test/support/disk-bucket.ts";
import { resolveAbandoned } from "../../batch/resolve.ts";
import { createLocalStore } from "../../format/local/local-store.ts";
import type { ObjectStore } from "../../format/storage.ts";
import { openDirectory } from "../../open-directory.ts";
import { createRemoteStore } from "../../stores/remote-store.ts";

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
        async copy(from, to) {
          if (from.endsWith(`t.lance/${HIDDEN}`)) await meanwhile(other);
          return plain.copy(from, to);
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

    test("a registration does not show the table again that was deregistered before the mark goes", async (t) => {
      const root = await temporaryDirectory(t);
      const open = (store: ObjectStore) => openClient(t, root, { storage: storageOf(store, root) });
      const other = await open(plain);
      let pending: (() => Promise<unknown>) | undefined = () => other.call("deregisterTable", "t");
      const beside = async (key: string) => {
        const work = key.endsWith(`t.lance/${HIDDEN}`) ? pending : undefined;
        if (work !== undefined) pending = undefined;
        await work?.();
      };
      const registrar = await open({
        ...plain,
        async delete(key) {
          await beside(key);
          return plain.delete(key);
        },
        async deleteTagged(key, tag) {
          await beside(key);
          return plain.deleteTagged(key, tag);
        },
      });
      await other.upload("createTable", "t", {}, rows);
      await other.call("deregisterTable", "t");
      await registrar.call("registerTable", "t", { location: "t.lance" });
      assert.equal(pending, undefined);
      for (const client of [registrar, other])
        assert.deepEqual((await client.call("listTables", "")).tables, []);
    });

    /** Leaves the note of a drop of `t` whose process ended after the commit; another process begins to resolve it. */
    async function resolveBeside(
      t: TestContext,
      meanwhile: (client: TestClient) => Promise<unknown>,
      held: "work" | "removal",
    ) {
      const root = await temporaryDirectory(t);
      const storage = storageOf(plain, root);
      let pending: (() => Promise<unknown>) | undefined;
      const beside = async () => {
        const work = pending;
        pending = undefined;
        await work?.();
      };
      const store: ObjectStore = {
        ...plain,
        files: plain.files && {
          ...plain.files,
          async moveDirectory(from, to) {
            if (held === "removal") await beside();
            return plain.files?.moveDirectory(from, to) ?? false;
          },
        },
        deleteDirectory: (directory, options) =>
          plain.deleteDirectory(directory, {
            ...options,
            async isFormer() {
              if (held === "removal") await beside();
              return (await options?.isFormer?.()) ?? true;
            },
          }),
      };
      const { context, close } = await openDirectory({
        root,
        storage: storageOf(store, root),
        log: silent,
        maintenance: false,
      });
      t.onTestFinished(close);
      const client = await openClient(t, root, { storage });
      await client.call("declareTable", "t");
      await client.call("deregisterTable", "t");
      await leaveMark(root, "t.lance");
      await leaveIntent(root, { departures: [{ location: "t.lance", remove: true }] }, ended);
      await leaveVerdict(root, "committed");
      const work: typeof context.work = {
        ...context.work,
        async isAtWork(location) {
          if (held === "work") await beside();
          return context.work.isAtWork(location);
        },
      };
      // The start of another process resolves the note, too.
      pending = async () => meanwhile(await openClient(t, root, { storage }));
      await resolveAbandoned({ ...context, work });
      assert.equal(pending, undefined);
      return { client, directory: join(root, "data", "t.lance") };
    }

    for (const held of ["work", "removal"] as const) {
      test(`the rest of a drop, held before the ${held}, keeps a table that was created after another process did that rest`, async (t) => {
        const create = (other: TestClient) => other.upload("createTable", "t", {}, rows);
        const { client, directory } = await resolveBeside(t, create, held);
        assert.equal((await client.call("countTableRows", "t")).count, 3n);
        assert.equal((await client.call("describeTable", "t")).location, directory);
      });
    }
  });
}
