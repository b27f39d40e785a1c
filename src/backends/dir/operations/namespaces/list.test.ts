import assert from "node:assert/strict";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import {
  openClient,
  type TestClient,
  temporaryDirectory,
} from "../../../../../test/fixtures/dir/directory-backend.ts";
import { createStaleness } from "../../concurrency/shared-checks.ts";
import { createLocalStore } from "../../format/local/local-store.ts";
import { createBaseListing } from "./list.ts";

/** Returns all names of the root, read in pages of a size. */
async function pages(client: TestClient, limit: number, includeDeclared = true): Promise<string[]> {
  const names: string[] = [];
  for (let pageToken = ""; ; ) {
    const page = await client.call("listTables", "$", { limit, includeDeclared, pageToken });
    assert.ok(page.tables.length <= limit);
    names.push(...page.tables);
    if (page.pageToken === undefined) return names;
    pageToken = page.pageToken;
  }
}

test("pages of any size list the tables of the manifest and those found by their directories, each once", async (t) => {
  const root = await temporaryDirectory(t);
  const client = await openClient(t, root, { tableDirectory: "." });
  const names = Array.from({ length: 40 }, (_, i) => `t${i}`);
  const [listed, unlisted] = [names.filter((_, i) => i % 3 !== 0), names.filter((_, i) => i % 3 === 0)];
  await Promise.all(listed.map((name) => client.call("declareTable", name)));
  for (const name of unlisted) {
    await mkdir(join(root, `${name}.lance`, "_versions"), { recursive: true });
    await writeFile(join(root, `${name}.lance`, "_versions", "1.manifest"), "");
  }
  // These are not tables: an empty directory, a deregistered one, and a file.
  await mkdir(join(root, "t100.lance"));
  await mkdir(join(root, "t101.lance"));
  for (const name of [".lance-reserved", ".lance-deregistered"])
    await writeFile(join(root, "t101.lance", name), "");
  await writeFile(join(root, "t102.lance"), "");
  for (const limit of [1, 2, 7, 39, 40, 41, 100]) {
    assert.deepEqual(await pages(client, limit), [...names].sort(), `pages of ${limit}`);
    assert.deepEqual(await pages(client, limit, false), [...unlisted].sort(), `pages of ${limit}`);
  }
  await rm(join(root, "t0.lance"), { recursive: true });
  assert.deepEqual(await pages(client, 10), names.filter((name) => name !== "t0").sort());
});

test("a listing reads the base again only after a directory comes or goes", async (t) => {
  const root = await temporaryDirectory(t);
  let reads = 0;
  const store = createLocalStore();
  const layout = {
    baseKey: store.keyOf(root),
    async tableDirectories() {
      reads++;
      const names: string[] = [];
      for await (const page of store.list(layout.baseKey)) names.push(...page.map(({ name }) => name));
      return names;
    },
  };
  const names = createBaseListing(store, layout, createStaleness(0));
  for (let i = 0; i < 30; i++) {
    await mkdir(join(root, `t${i}.lance`));
    assert.equal((await names()).length, i + 1);
    if (i % 3 === 0) await sleep(1);
  }
  const readAgain = async () => {
    const before = reads;
    await names();
    return reads - before;
  };
  await expect.poll(readAgain).toBe(0);
  const before = reads;
  for (let i = 0; i < 10; i++) assert.equal((await names()).length, 30);
  assert.equal(reads, before);
  await rm(join(root, "t3.lance"), { recursive: true });
  assert.ok(!(await names()).includes("t3"));
});
