import { expect, test } from "vitest";
import { type TypeDescription, typeInWords } from "./type-words.ts";

const type = (name: string, more: object = {}) => ({ type: name, fields: [], ...more }) as TypeDescription;
const field = (name: string, inner: TypeDescription) => ({ name, nullable: true, metadata: {}, type: inner });

test.each([
  [type("utf8"), "text"],
  [type("int64"), "64-bit integer"],
  [type("uint8"), "8-bit integer, not negative"],
  [type("float32"), "32-bit number"],
  [type("timestamp", { logicalType: "timestamp:us:UTC" }), "time in microseconds, UTC"],
  [type("timestamp", { logicalType: "timestamp:ms:-" }), "time in milliseconds"],
  [type("decimal128", { length: 10_002n }), "decimal number of 10 digits, 2 after the point"],
  [type("fixed_size_binary", { length: 16n }), "16 bytes"],
  [type("something_new"), "something_new"],
])("%o is %s", (given, words) => expect(typeInWords(given)).toBe(words));

test("a fixed-size list of numbers is a vector with its dimension", () => {
  const vector = type("fixed_size_list", { length: 768n, fields: [field("item", type("float32"))] });
  expect(typeInWords(vector)).toBe("vector of 768 32-bit numbers");
});

test("a list names its items, and a struct its fields", () => {
  expect(typeInWords(type("list", { fields: [field("item", type("utf8"))] }))).toBe("list of texts");
  const struct = type("struct", { fields: [field("a", type("utf8")), field("b", type("bool"))] });
  expect(typeInWords(struct)).toBe("group of a, b");
});
