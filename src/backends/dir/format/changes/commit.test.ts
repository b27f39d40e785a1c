import assert from "node:assert/strict";
import { clone, toBinary } from "@bufbuild/protobuf";
import { describe, it } from "vitest";
import { type MemoryStore, openFixture } from "../../../../../test/fixtures/dir/format.ts";
import { type Manifest, ManifestSchema } from "../../../../gen/lance/format/table_pb.ts";
import { isLanceError } from "../../../../namespace/errors.ts";
import type { DatasetRef } from "../dataset.ts";
import { metadataText } from "../files/manifest.ts";
import { buildManifestFile, readInheritedPart, readSection } from "../files/manifest-file.ts";
import { findTransaction, readTransactionMessage } from "../versions/transaction-records.ts";
import { latestVersion, listVersions, readVersion } from "../versions/version-files.ts";
import { type CommitOptions, commitMetadata } from "./commit.ts";
import type { MetadataChange } from "./metadata-change.ts";

type Fixture = DatasetRef & { readonly store: MemoryStore };

const change: MetadataChange = { config: { entries: { a: "1" } } };

/** Replaces the newest manifest by an altered one. */
async function alterNewest(dataset: Fixture, alter: (manifest: Manifest) => void): Promise<void> {
  const file = await readVersion(dataset);
  const manifest = clone(ManifestSchema, file.manifest);
  alter(manifest);
  const transaction = await readSection(file, manifest.transactionSection as bigint);
  const bytes = buildManifestFile(await readInheritedPart(file), transaction, manifest, file.signature);
  dataset.store.objects.set(file.key, bytes);
}

describe("a metadata commit", () => {
  for (const name of ["new", "old", "stable", "v1file"] as const) {
    it(`changes nothing else of ${name}`, async () => {
      const dataset = openFixture(name);
      const before = await readVersion(dataset);
      const committed = await commitMetadata(dataset, { tableMetadata: { entries: { a: "1" } } });
      const after = await readVersion(dataset);
      assert.equal(after.manifest.version, before.manifest.version + 1n);
      assert.equal(committed.version, after.manifest.version);
      assert.equal(after.manifest.tableMetadata["a"], "1");
      assert.equal((await latestVersion(dataset))?.scheme, name === "old" ? "V1" : "V2");
      assert.deepEqual(await readInheritedPart(after), await readInheritedPart(before));

      const undone = clone(ManifestSchema, after.manifest);
      for (const key of [
        "version",
        "timestamp",
        "transactionFile",
        "transactionSection",
        "tableMetadata",
      ] as const) {
        Object.assign(undone, { [key]: before.manifest[key] });
      }
      assert.deepEqual(toBinary(ManifestSchema, undone), toBinary(ManifestSchema, before.manifest));
    });
  }

  it("writes its transaction into the manifest, into a file, and the hint", async () => {
    const dataset = openFixture("new");
    const { version, transactionId } = await commitMetadata(dataset, change, { properties: { by: "us" } });
    const found = await findTransaction(dataset, transactionId);
    assert.deepEqual(
      { ...found, properties: { ...found.properties } },
      {
        version,
        uuid: transactionId,
        readVersion: 8n,
        operation: "UpdateConfig",
        tag: undefined,
        properties: { by: "us" },
      },
    );
    const { manifest, ...file } = await readVersion(dataset);
    assert.equal(manifest.transactionFile, `8-${transactionId}.txn`);
    const inline = await readSection({ ...file, manifest }, manifest.transactionSection as bigint);
    const inFile = dataset.store.objects.get(`base/t/_transactions/${manifest.transactionFile}`);
    assert.deepEqual(inFile, new Uint8Array(inline));
    assert.equal(
      String(dataset.store.objects.get("base/t/_versions/latest_version_hint.json")),
      '{"version":9}',
    );
  });

  it("records metadata of the schema as a change of the schema, over which no writer puts an older one", async () => {
    const dataset = openFixture("new");
    const { version } = await commitMetadata(dataset, { fieldMetadata: { id: { entries: { a: "1" } } } });
    const file = await readVersion(dataset, version);
    const message = await readTransactionMessage(dataset, file);
    assert.ok(message?.operation.case === "project");
    assert.deepEqual(message.operation.value.schema, file.manifest.fields);
    assert.equal(message.operation.value.preservesNullability, true);
  });

  it("goes to a branch without touching main", async () => {
    const dataset = openFixture("new");
    const branch = { ...dataset, branch: "feature/a" };
    assert.equal((await commitMetadata(branch, change)).version, 5n);
    assert.equal((await readVersion(branch)).manifest.branch, "feature/a");
    assert.equal((await latestVersion(dataset))?.version, 8n);
  });

  it("upserts, removes and replaces", async () => {
    const dataset = openFixture("new");
    await commitMetadata(dataset, {
      config: { entries: { owner: null, "no such key": null, more: "é" } },
      tableMetadata: { entries: { only: "this" }, replace: true },
      schemaMetadata: { entries: { ["__proto__"]: "x", added: "" } },
      fieldMetadata: {
        id: { entries: {}, replace: true },
        "at.`x.y`": { entries: { deep: "1" } },
      },
    });
    const { manifest } = await readVersion(dataset);
    assert.deepEqual({ ...manifest.config }, { "lance.auto_cleanup.interval": "1000", more: "é" });
    assert.deepEqual({ ...manifest.tableMetadata }, { only: "this" });
    assert.equal(metadataText(manifest.schemaMetadata)["made"], "by pylance");
    assert.equal(metadataText(manifest.schemaMetadata)["added"], "");
    const metadataOf = (name: string) => {
      const field = manifest.fields.find((found) => found.name === name);
      return metadataText(field?.metadata ?? {});
    };
    assert.deepEqual(metadataOf("id"), {});
    assert.deepEqual(metadataOf("x.y"), { deep: "1" });
  });

  it("sets the flag of settings only on a table that has settings", async () => {
    const dataset = openFixture("stable");
    const flagsOf = async () => (await readVersion(dataset)).manifest.writerFeatureFlags;
    assert.equal(await flagsOf(), 2n);
    await commitMetadata(dataset, change);
    assert.equal(await flagsOf(), 2n | 8n);
    await commitMetadata(dataset, { config: { entries: { a: null } } });
    assert.equal(await flagsOf(), 2n);
  });

  it("writes no transaction file if the table has none", async () => {
    const dataset = openFixture("new");
    await alterNewest(dataset, (manifest) => {
      manifest.writerFeatureFlags |= 32n;
    });
    const files = () => [...dataset.store.objects.keys()].filter((key) => key.endsWith(".txn")).length;
    const before = files();
    const { transactionId } = await commitMetadata(dataset, change);
    assert.equal(files(), before);
    assert.equal((await findTransaction(dataset, transactionId)).operation, "UpdateConfig");
  });
});

describe("metadata commits at the same time", () => {
  it("all succeed, each as a version of its own", async () => {
    const dataset = openFixture("new");
    const keys = Array.from({ length: 12 }, (_, i) => `k${i}`);
    await Promise.all(keys.map((key) => commitMetadata(dataset, { config: { entries: { [key]: "x" } } })));
    const { manifest } = await readVersion(dataset);
    for (const key of keys) assert.equal(manifest.config[key], "x");
    assert.deepEqual(
      (await listVersions(dataset)).map(({ version }) => Number(version)),
      [...Array(20).keys()].map((i) => i + 1),
    );
    assert.equal(
      [...dataset.store.objects.keys()].filter((key) => /^base\/t\/_transactions/.test(key)).length,
      20,
    );
  });

  it("give up after the last attempt, and leave nothing behind", async () => {
    const dataset = openFixture("new");
    const ending = new AbortController();
    let rivals = 0;
    const putIfAbsent = async () => {
      const { version } = await commitMetadata(dataset, change, { properties: { by: "rival" } });
      if (++rivals === 5) ending.abort();
      assert.equal(version, 8n + BigInt(rivals));
      return false;
    };
    const commit = (options: CommitOptions) =>
      commitMetadata({ ...dataset, store: { ...dataset.store, putIfAbsent } }, change, options);
    const transactions = () =>
      [...dataset.store.objects.keys()].filter((key) => key.startsWith("base/t/_transactions/")).length;
    const before = transactions();
    await assert.rejects(commit({ attempts: 3 }), (error) => isLanceError(error, "ConcurrentModification"));
    assert.equal(transactions(), before + 3);
    assert.equal((await latestVersion(dataset))?.version, 11n);
    await assert.rejects(commit({ signal: ending.signal }), { name: "AbortError" });
    assert.equal(rivals, 5);
  });

  it("succeed when the store's answer is lost", async () => {
    for (const answer of [() => Promise.reject(new Error("reset")), () => Promise.resolve(false)]) {
      const dataset = openFixture("new");
      const { putIfAbsent } = dataset.store;
      const store = {
        ...dataset.store,
        putIfAbsent: async (key: string, bytes: Uint8Array) => {
          await putIfAbsent(key, bytes);
          return answer();
        },
      };
      assert.equal((await commitMetadata({ ...dataset, store }, change)).version, 9n);
      assert.equal((await listVersions(dataset)).length, 9);
    }
  });

  it("fail as the store fails, and tolerate a hint that cannot be written", async () => {
    const dataset = openFixture("new");
    const fail = () => Promise.reject(new Error("disk full"));
    await assert.rejects(
      commitMetadata({ ...dataset, store: { ...dataset.store, putIfAbsent: fail } }, change),
      (error) => isLanceError(error, "OutcomeUnknown") && /disk full/.test(String(error.cause)),
    );
    const put = (key: string, bytes: Uint8Array) =>
      key.endsWith("hint.json") ? fail() : dataset.store.put(key, bytes);
    assert.equal(
      (await commitMetadata({ ...dataset, store: { ...dataset.store, put } }, change)).version,
      9n,
    );
  });
});

describe("a metadata commit is refused", () => {
  it("for a table that needs a newer writer or reader", async () => {
    for (const key of ["writerFeatureFlags", "readerFeatureFlags"] as const) {
      const dataset = openFixture("new");
      await alterNewest(dataset, (manifest) => {
        manifest[key] |= 1n << 12n;
      });
      await assert.rejects(commitMetadata(dataset, change), (error) => isLanceError(error, "Unsupported"));
    }
  });

  it("for keys with consequences beyond metadata, which a full replacement keeps", async () => {
    const dataset = openFixture("new");
    await alterNewest(dataset, (manifest) => {
      Object.assign(manifest.fields[1]?.metadata ?? {}, {
        "lance-schema:unenforced-primary-key": Buffer.from("true"),
      });
    });
    const refused: MetadataChange[] = [
      { schemaMetadata: { entries: { "lance.blob.managed": "true" } } },
      { fieldMetadata: { id: { entries: { "lance-schema:unenforced-primary-key:position": "1" } } } },
      { fieldMetadata: { id: { entries: { "lance-encoding:blob": "true" } } } },
      { fieldMetadata: { id: { entries: { "ARROW:extension:name": "lance.blob.v2" } } } },
      { fieldMetadata: { name: { entries: {}, replace: true } } },
    ];
    for (const one of refused) {
      await assert.rejects(commitMetadata(dataset, one), (error) => isLanceError(error, "InvalidInput"));
    }
    const allowed = { "lance-schema:unenforced-primary-key": "true", "lance-encoding:compression": "zstd" };
    await commitMetadata(dataset, { fieldMetadata: { name: { entries: allowed, replace: true } } });
  });

  it("for more metadata than anyone writes, unless the table had more before", async () => {
    const dataset = openFixture("new");
    await alterNewest(dataset, ({ fields }) => {
      for (const field of fields) field.metadata = {};
    });
    const most = 8 * 1024 * 1024;
    const numbered = (count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${i}`, ""]));
    const tooMuch = async (change: MetadataChange, message: RegExp) => {
      await assert.rejects(
        commitMetadata(dataset, change),
        (error) => isLanceError(error, "InvalidInput") && message.test(error.message),
      );
    };
    await tooMuch(
      { schemaMetadata: { entries: numbered(10_001), replace: true } },
      /10001 entries; the maximum is 10000$/,
    );
    const long = (length: number) => ({ entries: { a: "x".repeat(length - 1) }, replace: true });
    await tooMuch({ schemaMetadata: long(most + 1) }, /8388609 bytes; the maximum is 8388608$/);
    const [name = ""] = (await readVersion(dataset)).manifest.fields.map((field) => field.name);
    const both = { schemaMetadata: long(most), fieldMetadata: { [name]: long(10) } };
    await tooMuch(both, /8388618 bytes/);
    await commitMetadata(dataset, { schemaMetadata: long(most) });
    await tooMuch({ fieldMetadata: { [name]: long(10) } }, /8388618 bytes/);

    await alterNewest(dataset, (manifest) => {
      manifest.schemaMetadata = { a: Buffer.alloc(most + 9, "x"), b: Buffer.from("y") };
    });
    await commitMetadata(dataset, { schemaMetadata: { entries: { b: null } } });
    await tooMuch({ schemaMetadata: { entries: { b: "yy" } } }, /8388621 bytes/);
    await commitMetadata(dataset, { schemaMetadata: long(most) });
  });

  it("for a missing field", async () => {
    for (const path of ["no", "at.no", "at.x.y", "", "id.", ".id", "`id", "at..z", "x.y"]) {
      const commit = commitMetadata(openFixture("new"), { fieldMetadata: { [path]: { entries: {} } } });
      await assert.rejects(commit, (error) => isLanceError(error, "TableColumnNotFound"), path);
    }
  });

  it("for a table without any version, and for a file under a wrong name", async () => {
    const dataset = openFixture("new");
    const empty = commitMetadata({ ...dataset, root: "base/none" }, change);
    await assert.rejects(empty, (error) => isLanceError(error, "TableVersionNotFound"));
    const key = "base/t/_versions/18446744073709551606.manifest";
    dataset.store.objects.set(
      key,
      dataset.store.objects.get("base/t/_versions/18446744073709551607.manifest") as Uint8Array,
    );
    await assert.rejects(commitMetadata(dataset, change), /manifest holds version 8$/);
  });
});
