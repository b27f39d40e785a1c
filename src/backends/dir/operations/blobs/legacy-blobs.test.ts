import assert from "node:assert/strict";
import {
  Binary,
  type DataType,
  Dictionary,
  Field,
  Int32,
  LargeBinary,
  Schema,
  Struct,
  Table,
  tableFromIPC,
  tableToIPC,
  Utf8,
  vectorFromArray,
} from "apache-arrow";
import { test } from "vitest";
import { collectUpload } from "../../../../arrow/upload/upload.ts";
import { withBlobColumns } from "./legacy-blobs.ts";

const MAX_BYTES = 1024 * 1024;
const LEGACY = new Map([["lance-encoding:blob", "true"]]);

/** The columns of a table: around the blobs, types whose arrays have other numbers of buffers. */
const FIELDS = [
  new Field("text", new Dictionary(new Utf8(), new Int32(), 7), true),
  new Field("large", new LargeBinary(), true, new Map([...LEGACY, ["unit", "bytes"]])),
  new Field("small", new Binary(), true, LEGACY),
  new Field("kept", new LargeBinary(), true),
  new Field(
    "nested",
    new Struct<Record<string, DataType>>([
      new Field("number", new Int32(), true),
      new Field("blob", new LargeBinary(), true, LEGACY),
    ]),
    true,
  ),
];

/** The values of each batch: nulls and empty ones among others, none, and nulls alone. */
const BATCHES = [[Uint8Array.of(1, 2), null, new Uint8Array(), Uint8Array.of(3)], [], [null, null]];

function streamOf(values: readonly (Uint8Array | null)[][]): Uint8Array {
  const schema = new Schema(FIELDS);
  const tables = values.map((large) => {
    const columns = [
      large.map((_, i) => `text ${i % 2}`),
      large,
      large,
      large,
      large.map((blob, number) => (number === 1 ? null : { number, blob })),
    ];
    const vectors = FIELDS.map(({ name, type }, i) => [name, vectorFromArray(columns[i] as unknown[], type)]);
    return new Table(schema, Object.fromEntries(vectors));
  });
  return tableToIPC(
    new Table(
      schema,
      tables.flatMap(({ batches }) => batches),
    ),
    "stream",
  );
}

async function converted(stream: Uint8Array, hold: (bytes: number) => void = () => {}) {
  async function* body() {
    yield stream;
  }
  const upload = await collectUpload(body(), { maxBytes: MAX_BYTES });
  return { upload, result: await withBlobColumns(upload, hold) };
}

test("legacy blob columns become blobs with the same bytes, and other columns remain as they are", async () => {
  const { upload, result } = await converted(streamOf(BATCHES));
  const [before, after] = [tableFromIPC(upload.file), tableFromIPC(result.file)];
  const rows = after.toArray().map((row) => row.toJSON());
  const bytes = (value: { data: Uint8Array; uri: null } | null) => {
    assert.ok(value === null || value.uri === null);
    return value === null ? null : [...value.data];
  };
  const expected = BATCHES.flat().map((value) => (value === null ? null : [...value]));
  for (const name of ["large", "small"]) {
    assert.deepEqual(
      rows.map((row) => bytes(row[name])),
      expected,
    );
  }
  for (const name of ["text", "kept"]) {
    assert.deepEqual(after.getChild(name)?.toArray(), before.getChild(name)?.toArray());
  }
  for (const [i, row] of before.toArray().entries()) {
    const [was, is] = [row.nested, rows[i]?.["nested"]];
    assert.equal(is?.number, was?.number);
    assert.deepEqual(is && bytes(is.blob), was && (was.blob === null ? null : [...was.blob]));
  }
  assert.equal(after.batches.length, before.batches.length);
});

test("the schema has the fields of blobs with the metadata that the columns had", async () => {
  const { result } = await converted(streamOf(BATCHES));
  const [, large, , kept, nested] = result.schema.fields;
  assert.deepEqual(large?.metadata, { unit: "bytes", "ARROW:extension:name": "lance.blob.v2" });
  assert.deepEqual(
    large?.children.map(({ name, type }) => [name, type.name]),
    [
      ["data", "large_binary"],
      ["uri", "utf8"],
    ],
  );
  assert.equal(kept?.type.name, "large_binary");
  assert.deepEqual(nested?.children[1]?.metadata, { "ARROW:extension:name": "lance.blob.v2" });
});

test("the memory of the new file is taken before it is used", async () => {
  let held = 0;
  const { upload, result } = await converted(streamOf(BATCHES), (bytes) => {
    held += bytes;
  });
  assert.ok(held >= result.file.byteLength);
  assert.equal(result.heldBytes, upload.heldBytes + held);
  const refused = new Error("no memory");
  await assert.rejects(
    converted(streamOf(BATCHES), () => {
      throw refused;
    }),
    refused,
  );
});

test("an upload without legacy blob columns passes as it is", async () => {
  const stream = tableToIPC(
    new Table({ b: vectorFromArray([Uint8Array.of(1)], new LargeBinary()) }),
    "stream",
  );
  const { upload, result } = await converted(stream, () => assert.fail("it takes no memory"));
  assert.equal(result, upload);
});
