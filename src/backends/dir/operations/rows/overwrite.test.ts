import assert from "node:assert/strict";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { Int32, Table, tableToIPC, vectorFromArray } from "apache-arrow";
import { type TestContext, test } from "vitest";
import { ended } from "../../../../../test/fixtures/dir/batch.ts";
import {
  failsWith,
  openClient,
  silent,
  temporaryDirectory,
} from "../../../../../test/fixtures/dir/directory-backend.ts";
import { withParts } from "../../../../../test/fixtures/dir/with-parts.ts";
import { beginCall } from "../../../../../test/support/caller.ts";
import { CreateTableMode } from "../../../../gen/lance/namespace/v1/data_pb.ts";
import { LanceNamespaceService } from "../../../../gen/lance/namespace/v1/service_pb.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import type { Catalog } from "../../catalog/catalog.ts";
import { engineCall } from "../../engine/failures/errors.ts";
import type { ObjectStore } from "../../format/storage.ts";
import { openDirectory } from "../../open-directory.ts";
import type { DirContext } from "../context.ts";
import { createCreateOperations } from "./create-table.ts";

const rowsOf = (count: number) =>
  tableToIPC(new Table({ id: vectorFromArray(Array(count).fill(7), new Int32()) }), "stream");

/** A table, and a gateway that overwrites it with other rows and properties and whose commits can be observed. */
async function createWorld(t: TestContext, { isDeclared = false } = {}) {
  const root = await temporaryDirectory(t);
  const client = await openClient(t, root);
  const before = { properties: { of: "before" } };
  if (isDeclared) await client.call("declareTable", "t", before);
  else await client.upload("createTable", "t", before, rowsOf(2));
  const { context, close } = await openDirectory({ root, log: silent });
  t.onTestFinished(close);
  return {
    root,
    base: join(root, "data"),
    client,
    context,
    overwrite(mutate: Catalog["mutate"], count = 5, changed: Partial<DirContext> = {}) {
      const watched = withParts(context, { ...changed, catalog: { ...context.catalog, mutate } });
      const { createTable } = createCreateOperations(watched);
      const method = LanceNamespaceService.method.createTable;
      async function* body() {
        yield rowsOf(count);
      }
      const request = create(method.input, {
        mode: CreateTableMode.OVERWRITE,
        properties: { of: "after" },
      });
      return createTable(request, body(), beginCall(method, { id: ["t"] }));
    },
    async state() {
      const { properties, isOnlyDeclared } = await client.call("describeTable", "t", { checkDeclared: true });
      const count = isOnlyDeclared ? undefined : (await client.call("countTableRows", "t")).count;
      return [properties["of"], count];
    },
  };
}

const WORLDS = [
  ["a table", {}, ["before", 2n]],
  ["a declared table", { isDeclared: true }, ["before", undefined]],
] as const;

for (const [what, options, before] of WORLDS) {
  test(`overwriting ${what} replaces its rows and properties together`, async (t) => {
    const { context, overwrite, state } = await createWorld(t, options);
    await overwrite(context.catalog.mutate);
    assert.deepEqual(await state(), ["after", 5n]);
    await overwrite(context.catalog.mutate, 6);
    assert.deepEqual(await state(), ["after", 6n]);
  });

  test(`overwriting ${what} leaves it as it was when the properties cannot be committed`, async (t) => {
    const { base, context, overwrite, state } = await createWorld(t, options);
    let left = 1;
    const refused = overwrite((mutation) =>
      left-- > 0
        ? Promise.reject(new LanceError("ServiceUnavailable", "the storage fails"))
        : context.catalog.mutate(mutation),
    );
    await assert.rejects(refused, failsWith("ServiceUnavailable"));
    assert.deepEqual(await state(), before);
    assert.deepEqual(await readdir(join(base, ".intents")), []);
  });

  test(`overwriting ${what} that ends between rows and properties is undone at the next start`, async (t) => {
    const { root, base, overwrite, state } = await createWorld(t, options);
    const { promise: asked, resolve } = Promise.withResolvers<void>();
    // The process ends just before its commit.
    void overwrite(() => {
      resolve();
      return new Promise<never>(() => {});
    });
    await asked;
    const intents = join(base, ".intents");
    const [name = ""] = await readdir(intents);
    const { intent } = JSON.parse(await readFile(join(intents, name), "utf8"));
    await writeFile(join(intents, name), JSON.stringify({ owner: ended, intent }));
    await (await openClient(t, root)).close();
    assert.deepEqual(await state(), before);
    assert.deepEqual(await readdir(intents), []);
  });
}

test("overwriting a table that is renamed meanwhile changes nothing", async (t) => {
  const { client, context, overwrite } = await createWorld(t);
  let renamed = false;
  const refused = overwrite(async (mutation) => {
    if (!renamed) await client.call("renameTable", "t", { newTableName: "u" });
    renamed = true;
    return context.catalog.mutate(mutation);
  });
  await assert.rejects(refused, failsWith("ConcurrentModification"));
  const { properties } = await client.call("describeTable", "u");
  assert.deepEqual([properties["of"], (await client.call("countTableRows", "u")).count], ["before", 2n]);
});

test("a refused overwrite on whose rows another writer has built leaves their files", async (t) => {
  const { client, context, overwrite } = await createWorld(t);
  let isBuiltOn = false;
  const refused = overwrite(async (mutation) => {
    if (!isBuiltOn) {
      isBuiltOn = true;
      await client.upload("insertIntoTable", "t", {}, rowsOf(1));
      await client.call("renameTable", "t", { newTableName: "u" });
    }
    return context.catalog.mutate(mutation);
  });
  await assert.rejects(refused, failsWith("ConcurrentModification"));
  assert.equal((await client.call("countTableRows", "u")).count, 6n);
  await client.query("u", { k: 10n } as never);
});

test("overwriting a table that others write to replaces what they have written until then", async (t) => {
  const { client, context, overwrite, state } = await createWorld(t);
  let others = 2;
  const store: ObjectStore = {
    ...context.store,
    async putIfAbsent(key, bytes, after) {
      // Another writer takes the number of the version.
      if (key.includes("t.lance/_versions") && others-- > 0) {
        await client.upload("insertIntoTable", "t", {}, rowsOf(1));
      }
      return context.store.putIfAbsent(key, bytes, after);
    },
  };
  await overwrite(context.catalog.mutate, 5, { store });
  assert.deepEqual(await state(), ["after", 5n]);
});

/** Behaviour of the engine after another gateway has dropped the table that it overwrites. */
const AFTER_DROPS = {
  // Its words when the directory goes while it writes.
  "fails without the directory": () => {
    throw new Error("lance error: LanceError(IO): failed to persist temp file: No such file or directory");
  },
  "makes the directory again": undefined,
};

for (const [what, fail] of Object.entries(AFTER_DROPS)) {
  test(`overwriting a table is a concurrent modification if another gateway drops it and the engine ${what}`, async (t) => {
    const { client, context, overwrite, state } = await createWorld(t);
    // With the same properties, the engine writes to the table itself.
    await overwrite(context.catalog.mutate, 3);
    const engine: DirContext["engine"] = {
      ...context.engine,
      create: (location, file, mode) =>
        engineCall(async () => {
          await client.call("dropTable", "t");
          fail?.();
          return context.engine.create(location, file, mode);
        }),
    };
    const refused = overwrite(context.catalog.mutate, 5, { engine });
    await assert.rejects(refused, failsWith("ConcurrentModification"));
    assert.deepEqual((await client.call("listTables", "$")).tables, []);
    await client.upload("createTable", "t", { properties: { of: "new" } }, rowsOf(1));
    assert.deepEqual(await state(), ["new", 1n]);
  });
}

/** The engine writes the rows, and the gateway makes them a version together with other properties. */
for (const step of ["move", "putIfAbsent"] as const) {
  test(`overwriting rows and properties is a concurrent modification if another gateway drops the table before ${step}`, async (t) => {
    const { client, context, overwrite, state } = await createWorld(t);
    let isDropped = false;
    const dropOnce = async (key: string) => {
      if (isDropped || !key.includes("t.lance/")) return;
      isDropped = true;
      await client.call("dropTable", "t");
    };
    const store: ObjectStore = {
      ...context.store,
      async move(from, to) {
        if (step === "move") await dropOnce(to);
        return context.store.move(from, to);
      },
      async putIfAbsent(key, ...rest) {
        if (step === "putIfAbsent") await dropOnce(key);
        return context.store.putIfAbsent(key, ...rest);
      },
    };
    const refused = overwrite(context.catalog.mutate, 5, { store });
    await assert.rejects(refused, failsWith("ConcurrentModification"));
    assert.ok(isDropped);
    assert.deepEqual((await client.call("listTables", "$")).tables, []);
    await client.upload("createTable", "t", { properties: { of: "new" } }, rowsOf(1));
    assert.deepEqual(await state(), ["new", 1n]);
  });
}
