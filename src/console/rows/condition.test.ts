import { Float64, Int64, Table, Utf8, vectorFromArray } from "apache-arrow";
import { expect, test } from "vitest";
import { conditionOf } from "./condition.ts";

test("a condition has the integers and texts of a row", () => {
  const rows = new Table({
    id: vectorFromArray([1n, null], new Int64()),
    "odd name": vectorFromArray(["it's", "x".repeat(500)], new Utf8()),
    price: vectorFromArray([0.1, 0.2], new Float64()),
  });
  expect(conditionOf(rows, 0)).toBe("id = 1 AND `odd name` = 'it''s'");
  expect(conditionOf(rows, 1)).toBe("id IS NULL");
});
