import assert from "node:assert/strict";
import { setImmediate as nextTurn } from "node:timers/promises";
import { describe, it } from "vitest";
import {
  createMemoryStore,
  openFixture,
  saidOf,
  saidOfBranch,
} from "../../../../../test/fixtures/dir/format.ts";
import { errorEntry, isLanceError } from "../../../../namespace/errors.ts";
import { manifestName } from "../dataset.ts";
import { countRows, metadataText } from "../files/manifest.ts";
import { deleteVersions } from "./delete-versions.ts";
import { describeVersion, latestVersion, listVersions, readVersion } from "./version-files.ts";

const numbers = (entries: readonly { readonly version: bigint }[]) =>
  entries.map(({ version }) => Number(version));
const isMissing = (error: unknown) => isLanceError(error, "TableVersionNotFound");

describe("reading datasets of pylance", () => {
  for (const name of ["new", "old", "stable", "v1file"] as const) {
    for (const inOrder of [false, true]) {
      it(`finds versions and metadata of ${name}, ${inOrder ? "in an ordered store" : "on a disk"}`, async () => {
        const dataset = openFixture(name, inOrder);
        const said = saidOf(name);
        assert.deepEqual(numbers(await listVersions(dataset)), said.versions);
        assert.equal(Number((await latestVersion(dataset))?.version), said.version);
        const { manifest } = await readVersion(dataset);
        assert.equal(Number(manifest.version), said.version);
        assert.equal(Number(countRows(manifest).rows), said.rows);
        assert.equal(countRows(manifest).fragments, said.fragments);
        assert.deepEqual(manifest.config, said.config);
        assert.deepEqual(manifest.tableMetadata, said.tableMetadata);
        assert.deepEqual(metadataText(manifest.schemaMetadata), said.schemaMetadata);
        for (const field of manifest.fields.filter(({ parentId }) => parentId === -1)) {
          assert.deepEqual(metadataText(field.metadata), said.fieldMetadata[field.name]);
        }
      });
    }
  }

  it("finds a branch, which has its own versions", async () => {
    const branch = { ...openFixture("new"), branch: "feature/a" };
    assert.deepEqual(numbers(await listVersions(branch)), saidOfBranch.versions);
    const { manifest } = await readVersion(branch);
    assert.equal(manifest.branch, "feature/a");
    assert.equal(Number(countRows(manifest).rows), saidOfBranch.rows);
  });

  it("reads an earlier version, in both naming schemes", async () => {
    for (const name of ["new", "old"] as const) {
      const { manifest } = await readVersion(openFixture(name), 1n);
      assert.equal(manifest.version, 1n);
      const { seconds = 0n, nanos = 0 } = manifest.timestamp ?? {};
      const age = Date.now() - (Number(seconds) * 1000 + Math.floor(nanos / 1_000_000));
      assert.ok(age > 0 && age < 100 * 365 * 86_400_000);
      assert.equal(manifest.writerVersion?.library, "lance");
    }
  });
});

describe("versions", () => {
  it("are read a few hundred at a time, however long the page is", async () => {
    const store = createMemoryStore();
    for (let version = 1n; version <= 2_000n; version++)
      await store.put(`t/_versions/${manifestName(version, "V2")}`, new Uint8Array(1));
    let [reads, most] = [0, 0];
    const dataset = {
      root: "t",
      branch: undefined,
      store: {
        ...store,
        async *list(directory: string) {
          for await (const page of store.list(directory)) yield page.map(({ name }) => ({ name }));
        },
        async head(key: string) {
          most = Math.max(most, ++reads);
          await nextTurn();
          reads--;
          return store.head(key);
        },
      },
    };
    assert.equal((await listVersions(dataset, { limit: 1_500 })).length, 1_500);
    assert.ok(most <= 512, `${most} at a time`);
  });

  it("are listed in pages, in either direction", async () => {
    const dataset = openFixture("new");
    assert.deepEqual(numbers(await listVersions(dataset, { limit: 3 })), [1, 2, 3]);
    assert.deepEqual(numbers(await listVersions(dataset, { limit: 3, after: 3n })), [4, 5, 6]);
    assert.deepEqual(numbers(await listVersions(dataset, { descending: true, limit: 2 })), [8, 7]);
    assert.deepEqual(numbers(await listVersions(dataset, { descending: true, after: 3n })), [2, 1]);
  });

  it("omit staged and detached manifests", async () => {
    const dataset = openFixture("new");
    for (const name of ["00000000000000000001.manifest-1f2e", "d9223372036854775809.manifest"]) {
      dataset.store.objects.set(`base/t/_versions/${name}`, Buffer.from("x"));
    }
    assert.equal((await latestVersion(dataset))?.version, 8n);
    assert.equal((await listVersions(dataset)).length, 8);
  });

  it("are described with the location and the size of their manifest", async () => {
    const dataset = openFixture("old");
    const entry = await describeVersion(dataset, 1n);
    assert.equal(entry.key, "base/t/_versions/1.manifest");
    assert.equal(entry.manifestSize, dataset.store.objects.get(entry.key)?.byteLength);
    assert.equal((await describeVersion(dataset)).version, 2n);
  });

  it("are not found if they are missing", async () => {
    const dataset = openFixture("new");
    for (const version of [0n, 9n, -1n, 1n << 70n]) {
      await assert.rejects(describeVersion(dataset, version), isMissing);
      await assert.rejects(readVersion(dataset, version), isMissing);
    }
    const empty = { ...dataset, root: "base/none" };
    await assert.rejects(readVersion(empty), isMissing);
    assert.equal(await latestVersion(empty), undefined);
    assert.deepEqual(await listVersions(empty), []);
  });

  it("are refused in two naming schemes at once, as the engine refuses them", async () => {
    const dataset = openFixture("new");
    dataset.store.objects.set("base/t/_versions/9.manifest", Buffer.from("x"));
    await assert.rejects(latestVersion(dataset), /both naming schemes/);
    await assert.rejects(listVersions(dataset), /both naming schemes/);
  });
});

describe("corrupt manifests", () => {
  const key = "base/t/_versions/18446744073709551607.manifest";
  const pointingTo = (position: bigint) => (bytes: Buffer) => {
    bytes.writeBigInt64LE(position, bytes.length - 16);
    return bytes;
  };
  const damages: readonly [string, (bytes: Buffer) => Buffer][] = [
    ["cut off", (bytes) => bytes.subarray(0, -3)],
    ["empty", () => Buffer.alloc(0)],
    ["pointing past its end", pointingTo(1_000_000n)],
    ["pointing before its start", pointingTo(-1n)],
    ["of the wrong length", pointingTo(3n)],
  ];
  for (const [what, damage] of damages) {
    it(`name the file: ${what}`, async () => {
      const dataset = openFixture("new");
      dataset.store.objects.set(key, damage(Buffer.from(dataset.store.objects.get(key) as Uint8Array)));
      await assert.rejects(readVersion(dataset), {
        name: "LanceError",
        code: errorEntry("DataLoss").code,
        message: new RegExp(`^${key.split("/").at(-1)} is not a manifest: `),
      });
    });
  }
});

describe("deleting versions", () => {
  it("accepts ranges that end before a version or with the newest", async () => {
    const dataset = openFixture("new");
    const ranges = [
      { start: 1n, end: 3n },
      { start: 7n, end: -1n },
    ];
    assert.equal(await deleteVersions(dataset, ranges), 4);
    assert.deepEqual(numbers(await listVersions(dataset)), [3, 4, 5, 6]);
    assert.equal(
      String(dataset.store.objects.get("base/t/_versions/latest_version_hint.json")),
      '{"version":6}',
    );
    assert.equal(await deleteVersions(dataset, ranges), 0);
    assert.equal(await deleteVersions(dataset, [{ start: 0n, end: -1n }]), 4);
    assert.equal(dataset.store.objects.has("base/t/_versions/latest_version_hint.json"), false);
  });

  it("refuses more than a million at once, unless the range is open", async () => {
    const dataset = openFixture("new");
    const isInvalid = (error: unknown) => isLanceError(error, "InvalidInput");
    await assert.rejects(deleteVersions(dataset, [{ start: 0n, end: 1_000_001n }]), isInvalid);
    assert.equal(await deleteVersions(dataset, [{ start: 9n, end: 0n }]), 0);
  });
});
