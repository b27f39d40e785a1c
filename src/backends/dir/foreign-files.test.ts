import assert from "node:assert/strict";
import { cp, mkdir, readdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { describe, test } from "vitest";
import {
  failsWith,
  openClient,
  silent,
  temporaryDirectory,
} from "../../../test/fixtures/dir/directory-backend.ts";
import { idsOf, rows } from "../../../test/fixtures/dir/rows.ts";
import { createDiskBucket } from "../../../test/support/disk-bucket.ts";
import { DropNamespaceBehavior } from "../../gen/lance/namespace/v1/namespace_pb.ts";
import type { ChangeContext } from "./batch/journal.ts";
import { createLocalStore } from "./format/local/local-store.ts";
import type { ObjectStore } from "./format/storage.ts";
import { findLeftovers } from "./maintenance/find-leftovers.ts";
import { openDirectory } from "./open-directory.ts";
import { createRemoteStore } from "./stores/remote-store.ts";

const disk = createLocalStore();
const bucket: ObjectStore = {
  ...createRemoteStore(createDiskBucket()),
  uriOf: disk.uriOf,
  keyOf: disk.keyOf,
};

/** Files that other programs may have put beside the parts of a table, some in directories with the names of parts. */
const FOREIGN = [
  "notes.txt",
  "photos/a.jpg",
  "data/holiday.jpg",
  "data/photos/b.png",
  "data/inner/data/0.lance",
  "tree/oak.txt",
  "sub/inner.lance/data/0.lance",
  "sub/inner.lance/_versions/1.manifest",
];

/** Files of a table that neither an index, a deletion nor a ref of the test creates. */
const OWN = [
  ".lance-reserved",
  "_latest.manifest",
  "_alter_transactions/0-1/1.json",
  "_mem_wal/shard/1.arrow",
  "_indices/0/index.idx",
  "_deletions/0-1-2.arrow",
  "_refs/tags/a.json",
  "data/0101.lance",
  "data/.tmpAbC123",
  "data/0101/1.blob",
  "tree/a/b/_versions/1.manifest",
  "tree/a/b/data/0101.lance",
  "tree/a/b/data/0101/1.blob",
];

for (const [kind, store] of [
  ["a disk", disk],
  ["a bucket", bucket],
] as const)
  describe(`the files of others in the directory of a table, on ${kind}`, () => {
    async function open(t: Parameters<typeof openClient>[0]) {
      const root = await temporaryDirectory(t);
      const storage = {
        store,
        root: store.files === undefined ? store.keyOf(root) : root,
        engineOptions: {},
      };
      const client = await openClient(t, root, { storage });
      const base = join(root, "data");
      return {
        client,
        base,
        async put(directory: string, files: readonly string[]) {
          for (const file of files) {
            await mkdir(dirname(join(base, directory, file)), { recursive: true });
            await writeFile(join(base, directory, file), file);
          }
        },
        /** Lists the files in a directory of the base. */
        async files(directory: string) {
          const found = await readdir(join(base, directory), { recursive: true, withFileTypes: true }).catch(
            () => [],
          );
          return found
            .filter((entry) => entry.isFile())
            .map(({ parentPath, name }) => join(parentPath, name).slice(join(base, directory).length + 1))
            .sort();
        },
        async context(): Promise<ChangeContext> {
          const { context, close } = await openDirectory({ root, storage, log: silent, maintenance: false });
          t.onTestFinished(close);
          return context;
        },
      };
    }

    test("registers only a readable table that contains no other", async (t) => {
      const { client, base, put, files } = await open(t);
      await put("program", ["settings.json", "src/main.c"]);
      await client.call("createNamespace", "n");
      await client.upload("createTable", "t", {}, rows([1, 2]));
      await client.call("deregisterTable", "t");
      await cp(join(base, "t.lance"), join(base, "parent/inner"), { recursive: true });
      await cp(join(base, "t.lance"), join(base, "nested"), { recursive: true });
      await cp(join(base, "t.lance"), join(base, "nested/deep/inner.lance"), { recursive: true });
      await cp(join(base, "t.lance"), join(base, "around"), { recursive: true });
      await put("around/declared", [".lance-reserved"]);
      await put("damaged/_versions", ["1.manifest"]);
      const before = await files(".");
      for (const [location, reason] of [
        ["program", /location "program" does not contain a Lance table/],
        ["parent", /location "parent" does not contain a Lance table/],
        ["nowhere.lance", /location "nowhere.lance" does not contain a Lance table/],
        ["damaged", /location "damaged" does not contain a readable Lance table/],
        ["nested", /location "nested" contains another table in "deep\/inner.lance"/],
        ["around", /location "around" contains another table in "declared"/],
      ] as const) {
        const registered = client.call("registerTable", "n$x", { location });
        await assert.rejects(registered, (error: Error) => {
          assert.match(error.message, reason);
          return failsWith("InvalidInput")(error);
        });
        await assert.rejects(client.call("tableExists", "n$x"), failsWith("TableNotFound"));
      }
      assert.deepEqual(
        (await files(".")).filter((name) => !name.startsWith("__manifest")),
        before.filter((name) => !name.startsWith("__manifest")),
      );
      await put("t.lance", ["README.md", "plots/a.png"]);
      await client.call("registerTable", "n$x", { location: "t.lance" });
      assert.deepEqual(idsOf(await client.query("n$x")), [1, 2]);
    });

    test("a drop removes every file of the table, and no other", async (t) => {
      const { client, base, put, files } = await open(t);
      await client.call("createNamespace", "n");
      const locations: string[] = [];
      for (const id of ["t", "n$a", "n$b"]) {
        await client.upload("createTable", id, {}, rows([1, 2]));
        await client.call("deleteFromTable", id, { predicate: "id = 1" });
        await client.call("createTableTag", id, { tag: "first", version: 1n });
        await client.call("createTableBranch", id, { name: "x/y" });
        const { location = "" } = await client.call("describeTable", id);
        locations.push(location.slice(base.length + 1));
      }
      for (const location of locations) await put(location, [...FOREIGN, ...OWN]);
      await mkdir(join(base, "t.lance", "empty"));
      await client.call("dropTable", "t");
      await client.call("dropTable", "n$a");
      await client.call("dropNamespace", "n", { behavior: DropNamespaceBehavior.CASCADE });
      for (const location of locations)
        assert.deepEqual(await files(location), [...FOREIGN].sort(), location);
      assert.ok((await readdir(join(base, "t.lance"))).includes("empty"));
      assert.deepEqual((await client.call("listTables", "$")).tables, []);
      await client.upload("createTable", "t", {}, rows([3]));
      await client.call("dropTable", "t");
      assert.deepEqual(await files("t.lance"), [...FOREIGN].sort());
      const isForeign = (name: string) => locations.some((location) => name.startsWith(`${location}/`));
      const left = (await files(".")).filter(
        (name) => !/^(?:__manifest|\.intents)/.test(name) && !isForeign(name),
      );
      assert.deepEqual(left, []);
    });

    test("a drop leaves nothing of a table without the files of others, nor of a declared one", async (t) => {
      const { client, base, put, files } = await open(t);
      await client.upload("createTable", "t", {}, rows([1, 2]));
      // Buckets have no files without a name.
      await put("t.lance", store.files === undefined ? OWN : [...OWN, "data/0101.lance#3"]);
      await client.call("dropTable", "t");
      await client.call("declareTable", "u");
      await client.call("dropTable", "u");
      assert.deepEqual(await files("t.lance"), []);
      if (store.files !== undefined)
        assert.deepEqual(
          (await readdir(base)).filter((name) => name.endsWith(".lance")),
          [],
        );
    });

    test("gc reports no directory that contains the files of others", async (t) => {
      const { client, put, files, context } = await open(t);
      for (const id of ["t", "u"]) {
        await client.upload("createTable", id, {}, rows([1]));
        await client.call("deregisterTable", id);
      }
      await put("t.lance", ["data/holiday.jpg"]);
      await put(".dropped-0123", ["_versions/1.manifest", "notes.txt"]);
      const found: string[] = [];
      for await (const leftover of findLeftovers(await context(), Date.now() + 60_000)) {
        found.push(leftover.path);
        await leftover.remove();
      }
      assert.ok(found.includes("u.lance"), found.join());
      assert.ok(!found.includes("t.lance"), found.join());
      assert.deepEqual(await files(".dropped-0123"), ["notes.txt"]);
      assert.ok((await files("t.lance")).length > 1);
    });
  });
