import * as arrow from "apache-arrow";
import { expect, test } from "vitest";
import { COLUMN_TYPES, schemaOf } from "./column-types.ts";

test("each type of a form is a type of Arrow that may be null", () => {
  const schema = schemaOf(
    arrow,
    COLUMN_TYPES.map((type) => ({ name: type, type, dimension: 3 })),
  );
  expect(schema.fields.map(({ name, nullable, type }) => `${name}: ${type} ${nullable}`)).toEqual([
    "text: Utf8 true",
    "integer: Int64 true",
    "number: Float64 true",
    "true or false: Bool true",
    "time: Timestamp<MICROSECOND, UTC> true",
    "vector: FixedSizeList[3]<Float32> true",
    "bytes: Binary true",
  ]);
});
