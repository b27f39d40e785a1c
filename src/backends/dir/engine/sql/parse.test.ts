import assert from "node:assert/strict";
import { describe, it } from "vitest";
import { isLanceError } from "../../../../namespace/errors.ts";
import type { SqlNode } from "./tree.ts";
import { parseSql } from "./trees.ts";

const cases: [expression: string, tree: string][] = [
  ["a + b * c = d", "(= (+ a (* b c)) d)"],
  ["a - b - c", "(- (- a b) c)"],
  ["-a::int[1]", "(- {a :: int [1]})"],
  ["NOT a = 1 AND b OR c AND d AND e", "(or (and (not (= a 1)) b) (and c d e))"],
  ["NOT a IS NULL", "(not (is a NULL))"],
  ["a IS NOT DISTINCT FROM b + 1", "(not distinct a (+ b 1))"],
  ["a = b IS TRUE", "(is (= a b) TRUE)"],
  ["a NOT BETWEEN 1 AND 2 AND b", "(and (not between a 1 2) b)"],
  ["a NOT IN (1, -2)", "(not in a (1, (- 2)))"],
  ["a LIKE '%' || b ESCAPE '!'", "(like a (|| '%' b) '!')"],
  ["a NOT SIMILAR TO 'b'", "(not similar to a 'b')"],
  ["a LIKE 'b' COLLATE c", "(like a {'b' COLLATE c})"],
  ["a LIKE 'b' NOT LIKE 'c'", "(not like (like a {'b'}) 'c')"],
  ["t.`x`.y + t['and']", "(+ t.`x`.y {t ['and']})"],
  ["t.and = 1", "(= t.and 1)"],
  ["now() < DATE '2024-01-31'", "(< now() {DATE '2024-01-31'})"],
  ["CAST(a + 1 AS decimal(10, 2))", "CAST({(+ a 1) AS decimal(10, 2)})"],
  ["CASE a WHEN 1 THEN b AND c ELSE (d) END = e", "(= case[a | 1 | (and b c) | (d)] e)"],
  ["CASE WHEN (a, b) THEN c", "case[_ | (a, b) | c]"],
  ["a AND", "(and a _)"],
  ["= ,", "{(= _ _) _}"],
  ["", "_"],
];

function written(node: SqlNode): string {
  switch (node.kind) {
    case "missing":
      return "_";
    case "path":
      return node.parts.map(({ text }) => text).join(".");
    case "bracket": {
      const closing = node.opening === "[" ? "]" : ")";
      return `${node.name?.text ?? ""}${node.opening}${node.items.map(written).join(", ").replace(/^_$/, "")}${closing}`;
    }
    case "case":
      return `case[${node.parts.map(written).join(" | ")}]`;
    case "operation": {
      const operator = `${node.negated ? "not " : ""}${node.operator}`;
      return `(${[operator, ...node.operands.map(written)].join(" ")})`;
    }
    case "sequence":
      return `{${node.parts.map(written).join(" ")}}`;
    default:
      return node.text;
  }
}

describe("the tree of an expression", () => {
  for (const [expression, tree] of cases) {
    it(`of ${expression || "a blank text"} is ${tree}`, () => {
      assert.equal(written(parseSql(expression).root), tree);
    });
  }

  it("knows the places of its nodes in the text", () => {
    const text = " abs(a) = 1 or  (b is null )";
    const { root, nodes } = parseSql(text);
    assert.equal(text.slice(root.start, root.end), text.trim());
    assert.deepEqual(
      nodes.map(({ start, end }) => text.slice(start, end)),
      ["abs(a)", "abs(a) = 1", "abs(a) = 1 or  (b is null )", "(b is null )", "b is null"],
    );
  });

  it("is not deeper than its parser's stack bears", () => {
    for (const opening of ["(", "not ", "- ", "case ", "a in abs(", "["]) {
      const closing = { "(": ")", "[": "]" }[opening.at(-1) as string] ?? "";
      const text = opening.repeat(10_000) + closing.repeat(10_000);
      const tooDeep = (error: unknown) =>
        isLanceError(error, "InvalidInput") && error.message.includes("more than 400 deep");
      assert.throws(() => parseSql(text), tooDeep, opening);
    }
  });
});
