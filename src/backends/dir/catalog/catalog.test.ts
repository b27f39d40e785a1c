import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { access } from "node:fs/promises";
import { join } from "node:path";
import { test } from "vitest";
import {
  failsWith,
  openClient,
  silent,
  temporaryDirectory,
} from "../../../../test/fixtures/dir/directory-backend.ts";
import { isLanceError } from "../../../namespace/errors.ts";
import { createEngine } from "../engine/engine.ts";
import { createLocalStore } from "../format/local/local-store.ts";
import { createCatalog } from "./catalog.ts";
import { createManifestTable } from "./manifest/manifest-table.ts";
import type { Row } from "./state/row.ts";

const namespace = (objectId: string): Row => ({
  objectId,
  objectType: "namespace",
  location: undefined,
  properties: {},
});

test("shows the commits of a backend at once in another backend on the same directory", async (t) => {
  const root = await temporaryDirectory(t);
  const [a, b] = [await openClient(t, root), await openClient(t, root)];
  for (let i = 0; i < 40; i++) {
    const [writer, reader] = i % 2 === 0 ? [a, b] : [b, a];
    await writer.call("declareTable", `t${i}`);
    await reader.call("tableExists", `t${i}`);
    if (i % 4 !== 0) continue;
    await writer.call("dropTable", `t${i}`);
    await assert.rejects(reader.call("tableExists", `t${i}`), failsWith("TableNotFound"));
  }
});

test("lets a single one of concurrent declarations of a name win, and keeps that table in the catalog", async (t) => {
  const root = await temporaryDirectory(t);
  const clients = [await openClient(t, root), await openClient(t, root), await openClient(t, root)];
  await clients[0]?.call("createNamespace", "n");
  const names = Array.from({ length: 30 }, (_, i) => `n$t${i}`);
  const wins = await Promise.all(
    names.flatMap((name) =>
      clients.map(async (client, by) => {
        try {
          const { location } = await client.call("declareTable", name, { properties: { by: `${by}` } });
          return { name, by, location };
        } catch (error) {
          assert.ok(isLanceError(error, "TableAlreadyExists"), String(error));
          return undefined;
        }
      }),
    ),
  );
  const winners = wins.filter((win) => win !== undefined);
  assert.deepEqual(winners.map(({ name }) => name).sort(), [...names].sort());
  for (const { name, by, location } of winners) {
    const described = await clients[(by + 1) % 3]?.call("describeTable", name);
    assert.deepEqual([described?.location, described?.properties["by"]], [location, `${by}`]);
  }
});

test("does not let both the creation of a child and the end of its parent succeed", async (t) => {
  const root = await temporaryDirectory(t);
  const [a, b] = [await openClient(t, root), await openClient(t, root)];
  for (let i = 0; i < 15; i++) {
    await a.call("createNamespace", `n${i}`);
    await b.call("namespaceExists", `n${i}`);
    const [made, dropped] = await Promise.allSettled([
      a.call("createNamespace", `n${i}$child`),
      b.call("dropNamespace", `n${i}`),
    ]);
    assert.notEqual(made.status, dropped.status, "exactly one of them succeeds");
    const { namespaces } = await a.call("listNamespaces", "$");
    assert.equal(namespaces.includes(`n${i}`), made.status === "fulfilled");
  }
});

test("commits a group as a single version, with an answer for each mutation", async (t) => {
  const base = await temporaryDirectory(t);
  const engine = createEngine({ log: silent });
  t.onTestFinished(() => engine.close());
  const manifest = createManifestTable(base, engine, createLocalStore());
  const catalog = createCatalog(manifest, silent);
  await assert.rejects(access(join(base, "__manifest")));
  await catalog.read();
  await assert.rejects(access(join(base, "__manifest")), "a read writes nothing");

  await catalog.mutate((draft) => draft.put(namespace("first")));
  const before = (await manifest.head()).version;
  const answers = await Promise.allSettled(
    Array.from({ length: 20 }, (_, i) =>
      catalog.mutate((draft) => {
        const id = `n${i >> 1}`;
        if (draft.get(id) !== undefined) throw new Error(`${id} is taken`);
        draft.put(namespace(id));
        return i;
      }),
    ),
  );
  assert.deepEqual(
    answers.map((answer) => (answer.status === "fulfilled" ? answer.value : answer.reason.message)),
    Array.from({ length: 20 }, (_, i) => (i % 2 === 0 ? i : `n${i >> 1} is taken`)),
  );
  // The first of them starts at once, and the others wait for it together.
  assert.ok((await manifest.head()).version - before <= 2);
  await assert.rejects(catalog.mutate(() => Promise.reject(new Error("no"))));
  assert.deepEqual((await catalog.read()).children("", "namespace", "", 3), ["first", "n0", "n1"]);
});

test("does not read a table from the old handle when another process has replaced it", async (t) => {
  const root = await temporaryDirectory(t);
  const client = await openClient(t, root);
  const script = `
    import { createEngine } from ${JSON.stringify(import.meta.resolve("../engine/engine.ts"))};
    import { encodeRows } from ${JSON.stringify(import.meta.resolve("./manifest/row-codec.ts"))};
    import { rmSync } from "node:fs";
    const [path, count] = process.argv.slice(1);
    rmSync(path, { recursive: true, force: true });
    const engine = createEngine({ log: { debug() {} } });
    const rows = Array.from({ length: Number(count) }, (_, i) => ({ objectId: String(i), objectType: "x", properties: {} }));
    await engine.create(path, encodeRows(rows), "create");
    await engine.close();
  `;
  const replace = (count: number) =>
    new Promise((resolve, reject) => {
      const path = join(root, "data", "t.lance");
      const child = spawn(process.execPath, ["--input-type=module", "-e", script, path, String(count)]);
      child.once("error", reject);
      child.once("exit", resolve);
    });
  await replace(3);
  assert.equal((await client.call("countTableRows", "t")).count, 3n);
  await client.call("describeTable", "t", { loadDetailedMetadata: true });
  await replace(5);
  assert.equal((await client.call("countTableRows", "t")).count, 5n);
});
