import assert from "node:assert/strict";
import { test } from "vitest";
import { effectOf } from "./statement-text.ts";

test.each([
  ["SELECT 1", "reads"],
  ["FROM updates", "reads"],
  ["WITH x AS (SELECT 1) FROM x", "reads"],
  ["insert into t values (1)", "adds"],
  ["CREATE TABLE t AS SELECT 1", "adds"],
  ["create or  replace table t as select 1", "changes"],
  ["UPDATE t SET a = 1", "changes"],
  ["-- all of them\n/* really * */ DELETE FROM t", "changes"],
  ["\n drop table t", "changes"],
  ["/* a /* b */ */ INSERT INTO t VALUES (1)", "adds"],
  ["-- a\rDELETE FROM t", "changes"],
  ["\u200bDROP\u00a0TABLE t", "changes"],
  ["CREATE/* */OR -- \n REPLACE TABLE t AS SELECT 1", "changes"],
  ["/* DROP TABLE t", "reads"],
  ["REFRESH MATERIALIZED VIEW v WITH (full = true)", "adds"],
  ["DROP MATERIALIZED VIEW v", "changes"],
  ["DROPS", "reads"],
  ["", "reads"],
] as const)("%s: %s", (statement, effect) => {
  assert.equal(effectOf(statement), effect);
});
