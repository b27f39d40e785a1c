import assert from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { test } from "vitest";
import { type Manifest, ManifestSchema } from "../../../../../gen/lance/format/table_pb.ts";
import { ENCODING_KEY, SOUND_ENCODING, suspectsOf } from "./find-misread.ts";

/** Returns a manifest with a column in which each type contains the next one. */
function nested(types: readonly string[], { nullable = true, version = "2.2" } = {}) {
  const fields = types.map((logicalType, id) => ({ id, parentId: id - 1, logicalType, nullable }));
  return create(ManifestSchema, { fields, dataFormat: { fileFormat: "lance", version } });
}

/** Whether the engine may write files of a table that it then misreads. */
function mayBecomeMisread(manifest: Manifest): boolean {
  return suspectsOf(manifest).some(({ isSafe }) => !isSafe);
}

test("columns with lists of long values in a struct that may be null may become misread, and no others", () => {
  for (const types of [
    ["struct", "list", "string"],
    ["struct", "struct", "large_list", "binary"],
    ["struct", "list.struct", "struct", "large_string"],
    ["struct", "list", "fixed_size_list:float:128"],
    ["list.struct", "struct", "list", "string"],
    ["struct", "map", "struct", "string"],
  ]) {
    assert.equal(mayBecomeMisread(nested(types)), true, types.join());
    assert.equal(mayBecomeMisread(nested(types, { nullable: false })), false, types.join());
    assert.equal(mayBecomeMisread(nested(types, { version: "2.0" })), false, types.join());
    const encoded = nested(types);
    for (const field of encoded.fields.slice(0, 1))
      field.metadata[ENCODING_KEY] = Buffer.from(SOUND_ENCODING);
    assert.equal(mayBecomeMisread(encoded), false, types.join());
  }
  for (const types of [
    ["string"],
    ["list", "string"],
    ["struct", "string"],
    ["list.struct", "struct", "string"],
    ["struct", "list", "int32"],
    ["struct", "list", "dict:string:int32:false"],
    ["fixed_size_list:float:128"],
  ])
    assert.equal(mayBecomeMisread(nested(types)), false, types.join());
});

test("a packed struct is a column that may become misread, and so are short values with the encoding of long ones", () => {
  const packed = nested(["struct", "list.struct", "struct", "int32"]);
  assert.equal(mayBecomeMisread(packed), false);
  for (const { metadata } of packed.fields.slice(2, 3))
    metadata["lance-encoding:packed"] = Buffer.from("true");
  assert.equal(mayBecomeMisread(packed), true);
  for (const { metadata } of packed.fields.slice(0, 1)) metadata[ENCODING_KEY] = Buffer.from(SOUND_ENCODING);
  assert.equal(mayBecomeMisread(packed), true);
  const long = nested(["struct", "list", "int32"]);
  for (const { metadata } of long.fields.slice(0, 1)) metadata[ENCODING_KEY] = Buffer.from("FullZip");
  assert.equal(mayBecomeMisread(long), true);
});
