import assert from "node:assert/strict";
import { test } from "vitest";
import { isLanceError } from "../namespace/errors.ts";
import { formatFieldPath, parseFieldPath, resolveField } from "./field-path.ts";
import type { ArrowField } from "./schema.ts";

const PATHS: readonly (readonly [path: string, names: readonly string[]])[] = [
  ["a", ["a"]],
  ["a.b.c", ["a", "b", "c"]],
  ["a b.ü", ["a b", "ü"]],
  ["`a.b`.c", ["a.b", "c"]],
  ["a.`b``c`", ["a", "b`c"]],
];

test("paths are split into names, and names make up a path", () => {
  for (const [path, names] of PATHS) {
    assert.deepEqual(parseFieldPath(path), names, path);
    assert.deepEqual(parseFieldPath(formatFieldPath(names)), names);
  }
  assert.equal(formatFieldPath(["a_1", "b c", "d`e"]), "a_1.`b c`.`d``e`");
});

test("rejects malformed paths with InvalidInput", () => {
  for (const path of ["", ".", "a.", ".a", "a..b", "`a", "a`b", "``", "`a`b"]) {
    assert.throws(
      () => parseFieldPath(path),
      (error) => isLanceError(error, "InvalidInput"),
      path,
    );
  }
});

test("a path leads through structs and nothing else", () => {
  const leaf = (name: string): ArrowField => ({
    name,
    nullable: true,
    type: { name: "utf8" },
    children: [],
    dictionary: undefined,
    metadata: {},
  });
  const struct: ArrowField = { ...leaf("s"), type: { name: "struct" }, children: [leaf("x.y")] };
  const list: ArrowField = { ...leaf("l"), type: { name: "list" }, children: [leaf("item")] };
  const schema = { fields: [struct, list], metadata: {} };
  assert.equal(resolveField(schema, "s.`x.y`").field.name, "x.y");
  for (const path of ["x", "S", "s.x", "l.item"]) {
    assert.throws(
      () => resolveField(schema, path),
      (error) => isLanceError(error, "TableColumnNotFound"),
    );
  }
});
