import assert from "node:assert/strict";
import { create, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { type TestContext, test } from "vitest";
import {
  failsWith,
  openClient,
  temporaryDirectory,
} from "../../../../../test/fixtures/dir/directory-backend.ts";
import { rows } from "../../../../../test/fixtures/dir/rows.ts";
import { type IndexMetadataSchema, IndexSectionSchema } from "../../../../gen/lance/format/table_pb.ts";
import { manifestKey } from "../../format/dataset.ts";
import { buildManifestFile } from "../../format/files/manifest-file.ts";
import { createLocalStore } from "../../format/local/local-store.ts";
import { readVersion } from "../../format/versions/version-files.ts";

type Segment = MessageInitShape<typeof IndexMetadataSchema>;

/** Encodes fragment ids below 65,536 as a Roaring bitmap. */
function bitmapOf(...ids: number[]): Uint8Array {
  const words = [12346 & 0xffff, 0, 1, 0, 0, ids.length - 1, 16, 0, ...ids];
  return new Uint8Array(Uint16Array.from(words).buffer);
}

const segment = (name: string, type: string, fragmentBitmap: Uint8Array, fill = 1): Segment => ({
  uuid: { uuid: new Uint8Array(16).fill(fill) },
  fields: [0],
  name,
  fragmentBitmap,
  indexDetails: { typeUrl: `/lance.table.${type}IndexDetails`, value: new Uint8Array() },
  indexVersion: 0,
  createdAt: 1_700_000_000_000n + BigInt(fill),
  files: [{ path: "index.lance", sizeBytes: 100n }],
});

/** Opens a table of two fragments of three and two rows, to which another writer has added indices. */
async function openIndexed(t: TestContext, indices: Segment[]) {
  const root = await temporaryDirectory(t);
  const client = await openClient(t, root);
  const { location = "" } = await client.upload("createTable", "t", {}, rows([1, 2, 3]));
  await client.upload("insertIntoTable", "t", {}, rows([4, 5]));

  const store = createLocalStore();
  const dataset = { store, root: store.keyOf(location) };
  const { manifest, signature } = await readVersion(dataset);
  const section = toBinary(IndexSectionSchema, create(IndexSectionSchema, { indices }));
  const inherited = Buffer.alloc(4 + section.byteLength);
  inherited.writeUInt32LE(section.byteLength);
  inherited.set(section, 4);
  const next = {
    ...manifest,
    version: manifest.version + 1n,
    indexSection: 0n,
    transactionSection: BigInt(inherited.byteLength),
    transactionSectionDeprecated: undefined,
  };
  const file = buildManifestFile(inherited, new Uint8Array(), next as typeof manifest, signature);
  await store.create(manifestKey(dataset, next.version, "V2"), file);
  return client;
}

test("lists the indices of kinds that the engine leaves out, with their figures", async (t) => {
  const client = await openIndexed(t, [
    segment("zones", "ZoneMap", bitmapOf(0), 2),
    segment("zones", "ZoneMap", bitmapOf(1)),
    segment("grams", "NGram", bitmapOf(1)),
    segment("later", "HyperCube", bitmapOf(0, 1, 7)),
    segment("__lance_own", "ZoneMap", bitmapOf(0)),
  ]);
  const { indexes } = await client.call("listTableIndices", "t");
  assert.deepEqual(
    indexes.map(
      ({ indexName, indexType, columns, numIndexedRows, numUnindexedRows, numSegments, sizeBytes }) => [
        [indexName, indexType, columns],
        [numIndexedRows, numUnindexedRows, numSegments, sizeBytes],
      ],
    ),
    [
      [
        ["grams", "NGRAM", ["id"]],
        [2n, 3n, 1, 100n],
      ],
      [
        ["later", "HYPERCUBE", ["id"]],
        [5n, 0n, 1, 100n],
      ],
      [
        ["zones", "ZONEMAP", ["id"]],
        [5n, 0n, 2, 200n],
      ],
    ],
  );
  const zones = indexes.at(-1);
  assert.equal(zones?.indexUuid, "02020202-0202-0202-0202-020202020202");
  assert.equal(zones.createdAt, new Date(1_700_000_000_001).toISOString());
  assert.equal(zones.typeUrl, "/lance.table.ZoneMapIndexDetails");
  assert.equal((await client.call("getTableStats", "t")).numIndices, 3n);
  const page = await client.call("listTableIndices", "t", { limit: 2 });
  const rest = await client.call("listTableIndices", "t", { limit: 2, pageToken: page.pageToken ?? "" });
  assert.deepEqual([page.indexes.length, rest.indexes.length, rest.pageToken], [2, 1, undefined]);
});

test("returns the figures of an index of a kind that the engine does not know", async (t) => {
  const client = await openIndexed(t, [segment("zones", "ZoneMap", bitmapOf(0))]);
  const stats = await client.call("describeTableIndexStats", "t", { indexName: "zones" });
  assert.deepEqual(
    [stats.indexType, stats.numIndexedRows, stats.numUnindexedRows, stats.numIndices],
    ["ZONEMAP", 3n, 2n, 1],
  );
  const asked = client.call("describeTableIndexStats", "t", { indexName: "none" });
  await assert.rejects(asked, failsWith("TableIndexNotFound"));
});

test("lists an index that does not say what it covers, and the others beside it", async (t) => {
  const bare = { uuid: { uuid: new Uint8Array(16) }, fields: [0], name: "bare" };
  const client = await openIndexed(t, [bare, segment("tree", "BTree", bitmapOf(0, 1), 2)]);
  const { indexes } = await client.call("listTableIndices", "t");
  assert.deepEqual(
    indexes.map(({ indexName, indexType, numIndexedRows }) => [indexName, indexType, numIndexedRows]),
    [
      ["bare", "UNKNOWN", undefined],
      ["tree", "BTREE", 5n],
    ],
  );
  const stats = await client.call("describeTableIndexStats", "t", { indexName: "bare" });
  assert.deepEqual([stats.indexType, stats.numIndexedRows, stats.numUnindexedRows], ["UNKNOWN", 0n, 5n]);
});

test("refuses to build an index under the name of one that only the manifest lists", async (t) => {
  const client = await openIndexed(t, [segment("zones", "ZoneMap", bitmapOf(0))]);
  const request = { column: "id", indexType: "BTREE", name: "zones" };
  await assert.rejects(client.call("createTableIndex", "t", request), failsWith("TableIndexAlreadyExists"));
  await client.call("dropTableIndex", "t", { indexName: "zones" });
  assert.deepEqual((await client.call("listTableIndices", "t")).indexes, []);
});
