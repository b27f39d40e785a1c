import assert from "node:assert/strict";
import { describe, it } from "vitest";
import { openFixture, saidOf } from "../../../../../../test/fixtures/dir/format.ts";
import { isLanceError } from "../../../../../namespace/errors.ts";
import { describeVersion } from "../version-files.ts";
import {
  createTag,
  deleteTag,
  listBranches,
  listTags,
  openBranch,
  readBranch,
  readTag,
  updateTag,
} from "./refs.ts";

describe("refs of pylance", () => {
  it("are listed as the tags that pylance lists", async () => {
    const tags = [...(await listTags(openFixture("new")))];
    const found = tags.map(([name, { branch, version }]) => [name, [branch ?? null, Number(version)]]);
    assert.deepEqual(Object.fromEntries(found), saidOf("new").tags);
    assert.match((await readTag(openFixture("new"), "first"))?.createdAt ?? "", /^\d{4}-.*Z$/);
  });

  it("are listed as the branches that pylance lists, including names with slashes", async () => {
    const branches = [...(await listBranches(openFixture("new")))];
    const found = branches.map(([name, branch]) => {
      const { parentBranch, parentVersion, createAt, manifestSize } = branch;
      return [name, [parentBranch ?? null, Number(parentVersion), createAt, manifestSize]];
    });
    assert.deepEqual(Object.fromEntries(found), saidOf("new").branches);
  });

  it("are read several at a time, and listed in their order", async () => {
    const { store, ...rest } = openFixture("new");
    const names = ["c", "a", "b"];
    for (const tag of names) await createTag({ store, ...rest }, tag, { version: 1n });
    const all = (await listTags({ store, ...rest })).size;
    const { promise, resolve } = Promise.withResolvers<void>();
    let reading = 0;
    const get: typeof store.get = async (key) => {
      if (++reading === all) resolve();
      await promise;
      return store.get(key);
    };
    const listed = [...(await listTags({ ...rest, store: { ...store, get } })).keys()];
    assert.deepEqual(listed, listed.toSorted());
    assert.ok(names.every((name) => listed.includes(name)));
  });

  it("are empty for a table without refs", async () => {
    assert.equal((await listTags(openFixture("old"))).size, 0);
    assert.equal(await readTag(openFixture("old"), "first"), undefined);
    assert.equal(await readBranch(openFixture("old"), "feature/a"), undefined);
  });
});

describe("tags", () => {
  it("are created only once, for a version of main or of a branch", async () => {
    const dataset = openFixture("new");
    const created = await Promise.allSettled([1n, 2n].map((version) => createTag(dataset, "t", { version })));
    assert.deepEqual(created.map(({ status }) => status).sort(), ["fulfilled", "rejected"]);
    const again = createTag(dataset, "t", { version: 1n });
    await assert.rejects(again, (error) => isLanceError(error, "TableTagAlreadyExists"));
    const onBranch = await createTag(dataset, "b", { branch: "feature/a", version: 4n });
    assert.deepEqual(await readTag(dataset, "b"), onBranch);
    assert.equal(onBranch.branch, "feature/a");
    const text = String(dataset.store.objects.get("base/t/_refs/tags/t.json"));
    assert.equal((JSON.parse(text) as { branch: unknown }).branch, null);
  });

  it("are moved without losing their other fields", async () => {
    const dataset = openFixture("new");
    const before = await readTag(dataset, "first");
    const key = "base/t/_refs/tags/first.json";
    const content = JSON.parse(String(dataset.store.objects.get(key))) as object;
    const more = { ...content, metadata: { a: "b" }, later: 1 };
    dataset.store.objects.set(key, Buffer.from(JSON.stringify(more)));
    const after = await updateTag(dataset, "first", { version: 2n });
    assert.equal(after.version, 2n);
    assert.equal(after.createdAt, before?.createdAt);
    assert.notEqual(after.updatedAt, before?.updatedAt);
    assert.deepEqual(after.metadata, { a: "b" });
    assert.match(String(dataset.store.objects.get(key)), /"later": 1/);
  });

  it("are not found if the tag or its target is missing", async () => {
    const dataset = openFixture("new");
    const target = { version: 1n };
    await assert.rejects(updateTag(dataset, "no", target), (error) =>
      isLanceError(error, "TableTagNotFound"),
    );
    await assert.rejects(deleteTag(dataset, "no"), (error) => isLanceError(error, "TableTagNotFound"));
    const noVersion = createTag(dataset, "t", { version: 99n });
    await assert.rejects(noVersion, (error) => isLanceError(error, "TableVersionNotFound"));
    const noBranch = createTag(dataset, "t", { branch: "no", version: 1n });
    await assert.rejects(noBranch, (error) => isLanceError(error, "TableBranchNotFound"));
    await deleteTag(dataset, "first");
    assert.equal(await readTag(dataset, "first"), undefined);
  });

  it("name the file if they are corrupt", async () => {
    const dataset = openFixture("new");
    for (const text of ["{", "1"]) {
      dataset.store.objects.set("base/t/_refs/tags/first.json", Buffer.from(text));
      await assert.rejects(listTags(dataset), /^LanceError: first\.json is no JSON/);
    }
  });
});

describe("opening a branch", () => {
  it("accepts main under all its names", async () => {
    for (const name of [undefined, "main"]) {
      assert.equal((await openBranch(openFixture("new"), name)).branch, undefined);
    }
  });

  it("refuses a missing branch", async () => {
    const opened = openBranch(openFixture("new"), "feature/b");
    await assert.rejects(opened, (error) => isLanceError(error, "TableBranchNotFound"));
  });
});

describe("a tag for a version that is pruned at that moment", () => {
  /** A dataset whose version 1 goes when a tag is set. */
  function openPruned() {
    const dataset = openFixture("new");
    const { store } = dataset;
    const prune = async () => store.objects.delete((await describeVersion(dataset, 1n)).key);
    return {
      ...dataset,
      plain: dataset,
      store: {
        ...store,
        async putIfAbsent(key: string, bytes: Uint8Array) {
          await prune();
          return store.putIfAbsent(key, bytes);
        },
        async replace(key: string, bytes: Uint8Array, tag: string) {
          await prune().catch(() => {});
          return store.replace(key, bytes, tag);
        },
      },
    };
  }
  const isGone = (error: unknown) => isLanceError(error, "TableVersionNotFound");

  it("is not created", async () => {
    const dataset = openPruned();
    await assert.rejects(createTag(dataset, "late", { version: 1n }), isGone);
    assert.equal(await readTag(dataset, "late"), undefined);
  });

  it("stays where it was", async () => {
    const { plain, ...dataset } = openPruned();
    await createTag(plain, "moved", { version: 2n });
    await assert.rejects(updateTag(dataset, "moved", { version: 1n }), isGone);
    assert.equal((await readTag(dataset, "moved"))?.version, 2n);
  });
});
