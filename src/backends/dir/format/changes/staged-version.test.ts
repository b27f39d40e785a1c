import assert from "node:assert/strict";
import { clone, create, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { describe, it } from "vitest";
import { type MemoryStore, openFixture } from "../../../../../test/fixtures/dir/format.ts";
import { BasePathSchema, ManifestSchema } from "../../../../gen/lance/format/table_pb.ts";
import { TransactionSchema } from "../../../../gen/lance/format/transaction_pb.ts";
import { isLanceError, LanceError } from "../../../../namespace/errors.ts";
import { type DatasetRef, manifestKey, type NamingScheme } from "../dataset.ts";
import { buildManifestFile, readInheritedPart } from "../files/manifest-file.ts";
import { deleteVersions } from "../versions/delete-versions.ts";
import { describeVersion, listVersions, readVersion } from "../versions/version-files.ts";
import { createVersion } from "./staged-version.ts";

type Fixture = DatasetRef & { readonly store: MemoryStore };

/** Removes a version and returns it as a client would stage it. */
function stage(dataset: Fixture, version: bigint, scheme: NamingScheme = "V2"): string {
  const key = manifestKey(dataset, version, scheme);
  const stagedKey = `${key}-5f3a`;
  dataset.store.objects.set(stagedKey, dataset.store.objects.get(key) as Uint8Array);
  dataset.store.objects.delete(key);
  return stagedKey;
}

const conflict = (error: unknown) => isLanceError(error, "ConcurrentModification");
const invalid = (error: unknown) => isLanceError(error, "InvalidInput");

describe("creating a version from a staged manifest", () => {
  it("compares the entity tag of the staged file where the store has such tags", async () => {
    const open = (hasEntityTags: boolean) => {
      const { store, ...dataset } = openFixture("new");
      const stagedKey = stage({ ...dataset, store }, 8n);
      return { dataset: { ...dataset, store: { ...store, hasEntityTags } }, stagedKey };
    };
    const { dataset, stagedKey } = open(true);
    const { tag } = (await dataset.store.getTagged(stagedKey)) ?? assert.fail();
    for (const eTag of [`${tag}0`, '"other"'])
      await assert.rejects(
        createVersion(dataset, { version: 8n, stagedKey, eTag }),
        (error) => invalid(error) && (error as Error).message.includes(`e_tag ${tag}, not `),
      );
    assert.equal(dataset.store.objects.has(stagedKey), true);
    await createVersion(dataset, { version: 8n, stagedKey, eTag: `W/"${tag}"` });
    for (const [eTag, hasEntityTags] of [
      [tag, true],
      [`"${tag}"`, true],
      ["other", false],
    ] as const) {
      const again = open(hasEntityTags);
      await createVersion(again.dataset, { version: 8n, stagedKey: again.stagedKey, eTag });
    }
  });

  it("publishes it as the next version and removes the staged file", async () => {
    for (const [name, version, scheme] of [
      ["new", 8n, "V2"],
      ["old", 2n, "V1"],
    ] as const) {
      const dataset = openFixture(name);
      const stagedKey = stage(dataset, version, scheme);
      const bytes = dataset.store.objects.get(stagedKey);
      const entry = await createVersion(dataset, { version, stagedKey, manifestSize: bytes?.byteLength });
      assert.equal(entry.key, manifestKey(dataset, version, scheme));
      assert.equal(dataset.store.objects.get(entry.key), bytes);
      assert.equal(dataset.store.objects.has(stagedKey), false);
      assert.deepEqual(await describeVersion(dataset), entry);
      assert.equal(
        String(dataset.store.objects.get("base/t/_versions/latest_version_hint.json")),
        `{"version":${version}}`,
      );
    }
  });

  it("may be repeated, even if the staged file is a second copy", async () => {
    const dataset = openFixture("new");
    const stagedKey = stage(dataset, 8n);
    const bytes = dataset.store.objects.get(stagedKey) as Uint8Array;
    const entry = await createVersion(dataset, { version: 8n, stagedKey });
    dataset.store.objects.set(stagedKey, bytes);
    assert.deepEqual(await createVersion(dataset, { version: 8n, stagedKey: `/${stagedKey}` }), entry);
    assert.equal(dataset.store.objects.has(stagedKey), false);
  });

  it("does not say that a version is not there which the storage has and cannot describe", async () => {
    const dataset = openFixture("new");
    const stagedKey = stage(dataset, 8n);
    const key = manifestKey(dataset, 8n, "V2");
    const store = {
      ...dataset.store,
      async head(asked: string) {
        if (asked === key) throw new LanceError("ServiceUnavailable", "the storage does not answer");
        return dataset.store.head(asked);
      },
    };
    // A client that repeats the call after a 503 would find its staged manifest gone, and commit its rows once more.
    await assert.rejects(createVersion({ ...dataset, store }, { version: 8n, stagedKey }), (error) =>
      isLanceError(error, "OutcomeUnknown"),
    );
    assert.equal((await describeVersion(dataset)).version, 8n);
  });

  it("lets only one of two different manifests win", async () => {
    const dataset = openFixture("new");
    const stagedKey = stage(dataset, 8n);
    const other = Buffer.from(dataset.store.objects.get(stagedKey) as Uint8Array);
    other[10] = (other[10] as number) ^ 1;
    dataset.store.objects.set(`${stagedKey}2`, other);
    const staged = [stagedKey, `${stagedKey}2`];
    const created = await Promise.allSettled(
      staged.map((key) => createVersion(dataset, { version: 8n, stagedKey: key })),
    );
    assert.deepEqual(created.map(({ status }) => status).sort(), ["fulfilled", "rejected"]);
    const lost = created.findIndex(({ status }) => status === "rejected");
    assert.ok(conflict((created[lost] as PromiseRejectedResult).reason));
    assert.equal(dataset.store.objects.has(staged[lost] as string), true);
  });

  it("is a conflict for any other number", async () => {
    const dataset = openFixture("new");
    const stagedKey = stage(dataset, 8n);
    for (const version of [0n, 7n, 9n])
      await assert.rejects(createVersion(dataset, { version, stagedKey }), conflict);
    const empty = { ...dataset, root: "base/empty" };
    await assert.rejects(
      createVersion(empty, { version: 8n, stagedKey: "base/empty/_versions/x.manifest-1" }),
      conflict,
    );
  });

  it("requires a staged file in the dataset, of that size, with a manifest of that version", async () => {
    const dataset = openFixture("new");
    const stagedKey = stage(dataset, 8n);
    const missing = "base/t/_versions/1.manifest-0";
    for (const key of [
      missing,
      "base/u/_versions/1.manifest-0",
      "base/t/_versions/../x",
      "base/t/_versions/",
      "x",
    ]) {
      await assert.rejects(createVersion(dataset, { version: 8n, stagedKey: key }), invalid, key);
    }
    const committed = manifestKey(dataset, 7n, "V2");
    await assert.rejects(createVersion(dataset, { version: 8n, stagedKey: committed }), invalid);
    await assert.rejects(createVersion(dataset, { version: 8n, stagedKey, manifestSize: 1 }), invalid);
    await assert.rejects(createVersion(dataset, { version: 8n, stagedKey, namingScheme: "V1" }), invalid);
    dataset.store.objects.set(missing, Buffer.from("no manifest at all"));
    await assert.rejects(createVersion(dataset, { version: 8n, stagedKey: missing }), invalid);
    dataset.store.objects.set(missing, dataset.store.objects.get(committed) as Uint8Array);
    await assert.rejects(createVersion(dataset, { version: 8n, stagedKey: missing }), invalid);
    assert.equal((await listVersions(dataset)).length, 7);
  });
});

describe("creating a version with files in other directories", () => {
  /** Stages the next version, with base paths in addition to those of the newest one. */
  async function stageWith(dataset: Fixture, ...paths: readonly string[]) {
    const file = await readVersion(dataset);
    const manifest = clone(ManifestSchema, file.manifest);
    manifest.version += 1n;
    manifest.basePaths.push(...paths.map((path, id) => create(BasePathSchema, { id, path })));
    const stagedKey = `${manifestKey(dataset, manifest.version, "V2")}-5f3a`;
    const inherited = await readInheritedPart(file);
    const transaction = {
      ...manifest,
      transactionSection: BigInt(inherited.byteLength),
      transactionFile: "",
    };
    const bytes = buildManifestFile(inherited, new Uint8Array(), transaction, file.signature);
    dataset.store.objects.set(stagedKey, bytes);
    return { version: manifest.version, stagedKey };
  }
  const refused = (error: unknown) => isLanceError(error, "PermissionDenied");

  it("refuses directories outside of the table, in every spelling", async () => {
    for (const path of [
      ...["memory://base/other", "memory://base/t2", "memory://base/t/../other", "base/other", "/etc"],
      ...["file:///etc", "s3://bucket/base/t", "", "memory://base", "//base/t"],
      ...["..", "%2e%2e", "%2E.", ".\t.", "..\n", ".. ", "x/../.."].map(
        (up) => `memory://base/t/${up}/other`,
      ),
      ...["..\\other", "x\\..\\..\\other", "..", "..?", "..#", "%2e%2e%2fother"].map((up) => `base/t/${up}`),
    ]) {
      const dataset = openFixture("new");
      const staged = await stageWith(dataset, path);
      await assert.rejects(createVersion(dataset, staged), refused, path);
      assert.ok(dataset.store.objects.has(staged.stagedKey));
    }
  });

  it("accepts the table itself and directories in it, and those that the version before names", async () => {
    const dataset = openFixture("new");
    await createVersion(dataset, await stageWith(dataset, "memory://base/t/", "base/t/tree/b"));
    const { version, stagedKey } = await stageWith(dataset, "memory://base/other");
    dataset.store.objects.set(
      manifestKey(dataset, version, "V2"),
      dataset.store.objects.get(stagedKey) as Uint8Array,
    );
    assert.equal((await createVersion(dataset, await stageWith(dataset))).version, version + 1n);
  });
});

describe("creating the first version of a branch", () => {
  /** The branch of the fixture names the directory in which its table was made. */
  const branchOf = ({ store, root }: Fixture) => {
    const uriOf = (key: string) => key.replace(root, "/tmp/fx/p/new");
    return { store: { ...store, uriOf }, root, branch: "feature/a" };
  };
  const ref = "base/t/_refs/branches/feature%2Fa.json";

  it("requires the version of its parent", async () => {
    const branch = branchOf(openFixture("new"));
    await deleteVersions(branch, [{ start: 4n, end: -1n }]);
    const stagedKey = stage(branch, 3n);
    await assert.rejects(createVersion(branch, { version: 4n, stagedKey }), conflict);
    assert.equal((await createVersion(branch, { version: 3n, stagedKey })).version, 3n);
  });

  it("accepts any version before the branch is registered, and none after its deletion", async () => {
    const branch = branchOf(openFixture("new"));
    const next = stage(branch, 4n);
    branch.store.objects.delete(ref);
    const deleted = createVersion(branch, { version: 4n, stagedKey: next });
    await assert.rejects(deleted, (error) => isLanceError(error, "TableBranchNotFound"));
    const stagedKey = stage(branch, 3n);
    assert.equal((await createVersion(branch, { version: 3n, stagedKey })).version, 3n);
  });
});

describe("changed fragments", () => {
  type Operation = MessageInitShape<typeof TransactionSchema>["operation"];

  /**
   * Stages the version after the newest one, made by an operation.
   *
   * @param behind the number of versions that the writer has not read. Default: it has read the newest version
   */
  async function stage(operation: Operation, behind = 0n) {
    const dataset = openFixture("new");
    const file = await readVersion(dataset);
    const version = file.manifest.version + 1n;
    const transaction = create(TransactionSchema, {
      uuid: "u",
      readVersion: file.manifest.version - behind,
      operation,
    } as MessageInitShape<typeof TransactionSchema>);
    const inherited = await readInheritedPart(file);
    const manifest = { ...file.manifest, version, transactionSection: BigInt(inherited.byteLength) };
    const stagedKey = `${manifestKey(dataset, version, "V2")}-1`;
    dataset.store.objects.set(
      stagedKey,
      buildManifestFile(inherited, toBinary(TransactionSchema, transaction), manifest, file.signature),
    );
    return { dataset, ids: manifest.fragments.map(({ id }) => id), staged: { version, stagedKey } };
  }

  const GONE = 1_000n;

  const CHANGES: Readonly<Record<string, (id: bigint) => Operation>> = {
    "an update of rows": (id) => ({ case: "update", value: { updatedFragments: [{ id }] } }),
    "an update that empties a fragment": (id) => ({ case: "update", value: { removedFragmentIds: [id] } }),
    "a deletion of rows": (id) => ({ case: "delete", value: { updatedFragments: [{ id }] } }),
    "a deletion that empties a fragment": (id) => ({ case: "delete", value: { deletedFragmentIds: [id] } }),
  };

  describe("a staged version", () => {
    for (const [name, change] of Object.entries(CHANGES)) {
      it(`with ${name} is a conflict if the fragment is gone`, async () => {
        const { dataset, staged } = await stage(change(GONE));
        const conflict = (error: unknown) =>
          isLanceError(error, "ConcurrentModification") && error.message.includes(String(GONE));
        await assert.rejects(createVersion(dataset, staged), conflict);
        assert.equal(dataset.store.objects.has(staged.stagedKey), true);
      });

      it(`with ${name} is published if the fragment exists`, async () => {
        const { ids } = await stage(change(GONE));
        const { dataset, staged } = await stage(change(ids[0] as bigint));
        assert.equal((await createVersion(dataset, staged)).version, staged.version);
      });

      it(`with ${name} is a conflict if its writer cannot have seen a version in between, which was pruned`, async () => {
        const { ids } = await stage(change(GONE));
        const { dataset, staged } = await stage(change(ids[0] as bigint), 3n);
        const between = manifestKey(dataset, staged.version - 3n, "V2");
        const bytes = dataset.store.objects.get(between) as Uint8Array;
        dataset.store.objects.delete(between);
        await assert.rejects(createVersion(dataset, staged), (error) =>
          isLanceError(error, "ConcurrentModification"),
        );
        dataset.store.objects.set(between, bytes);
        dataset.store.objects.delete(manifestKey(dataset, staged.version - 4n, "V2"));
        assert.equal((await createVersion(dataset, staged)).version, staged.version);
      });
    }
  });
});
