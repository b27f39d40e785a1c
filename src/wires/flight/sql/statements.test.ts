import assert from "node:assert/strict";
import { test } from "vitest";
import { createKeptStatements, type DescribedStatement } from "./statements.ts";

const statement = (name: string) => ({ name }) as unknown as DescribedStatement;

test("a statement is taken once, by its owner", () => {
  const kept = createKeptStatements();
  const one = statement("one");
  kept.keep("1", "ada", one, 10);
  assert.equal(kept.take("1", "grace"), undefined);
  assert.equal(kept.take("1", "ada"), one);
  assert.equal(kept.take("1", "ada"), undefined);
  kept.keep("2", "ada", one, 16 * 1024 + 1);
  assert.equal(kept.take("2", "ada"), undefined);
});

test("statements leave after a minute, and the oldest when there are too many", () => {
  let now = 0;
  const kept = createKeptStatements(() => now);
  for (let i = 0; i < 100; i++) kept.keep(String(i), "ada", statement(String(i)), 10);
  assert.equal(kept.take("35", "ada"), undefined);
  assert.notEqual(kept.take("36", "ada"), undefined);
  now = 60_000;
  assert.equal(kept.take("99", "ada"), undefined);
});
