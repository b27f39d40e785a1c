import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "vitest";

test.runIf(process.platform === "linux" && process.arch === "x64")(
  "DuckDB's allocator reads its options from the variable that the process of the engine has",
  () => {
    const { stderr } = spawnSync(process.execPath, ["--eval", 'require("@duckdb/node-bindings")'], {
      cwd: import.meta.dirname,
      env: { DUCKDB_JE_MALLOC_CONF: "dirty_decay_ms:10000,no_option:1" },
      encoding: "utf8",
    });
    assert.match(stderr, /no_option:1/);
    assert.doesNotMatch(stderr, /dirty_decay_ms/);
  },
);
