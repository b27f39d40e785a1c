import { expect, test } from "vitest";
import type { JsonArrowSchema } from "../../gen/lance/namespace/v1/schema_pb.ts";
import { indexableColumns, isScalarIndex } from "./index-types.ts";

interface Type {
  readonly type: string;
  readonly logicalType?: string;
  readonly fields?: readonly object[];
}

const field = (name: string, type: Type) => ({ name, type: { fields: [], ...type } });
const list = (type: string, item: string) => ({ type, fields: [field("item", { type: item })] });

function typesOf(...fields: readonly object[]): Record<string, string> {
  const columns = indexableColumns({ fields } as unknown as JsonArrowSchema);
  return Object.fromEntries(
    columns.map(({ path, types }) => [path, types.map(({ name }) => name).join(" ")]),
  );
}

test("a column can have the types of indices that suit its values, the usual one first", () => {
  expect(
    typesOf(
      field("id", { type: "int64" }),
      field("seen", { type: "timestamp", logicalType: "timestamp:us:UTC" }),
      field("text", { type: "large_utf8" }),
      field("tags", list("list", "utf8")),
      field("numbers", list("list", "int32")),
      field("vector", list("fixed_size_list", "float32")),
      field("picture", { type: "binary" }),
      field("matrix", { type: "list", fields: [field("item", list("list", "float32"))] }),
    ),
  ).toEqual({
    id: "BTREE BITMAP ZONEMAP BLOOMFILTER",
    seen: "BTREE ZONEMAP BLOOMFILTER",
    text: "FTS BITMAP NGRAM FM ZONEMAP BLOOMFILTER",
    tags: "FTS LABEL_LIST",
    numbers: "LABEL_LIST",
    vector: "IVF_PQ IVF_FLAT IVF_RQ IVF_HNSW_SQ IVF_HNSW_PQ",
  });
});

test("a column inside of groups has a path, with unusual names between backticks", () => {
  const inner = field("a.b`c", { type: "int32" });
  expect(Object.keys(typesOf(field("group", { type: "struct", fields: [inner] })))).toEqual([
    "group.`a.b``c`",
  ]);
});

test("indices of words and of vectors are not scalar", () => {
  expect(["BTREE", "LABEL_LIST", "FTS", "IVF_PQ"].map(isScalarIndex)).toEqual([true, true, false, false]);
});
