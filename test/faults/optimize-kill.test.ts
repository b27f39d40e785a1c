import assert from "node:assert/strict";
import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { tableFromIPC } from "apache-arrow";
import { expect, test } from "vitest";
import { openDirectory } from "../../src/backends/dir/open-directory.ts";
import { createUpkeepLeases } from "../../src/backends/dir/upkeep/lease.ts";
import { optimizeTables } from "../../src/backends/dir/upkeep/optimize-now.ts";
import { openClient, silent, temporaryDirectory } from "../fixtures/dir/directory-backend.ts";
import { rows } from "../fixtures/dir/rows.ts";
import { startProgram } from "../support/program.ts";

const WITHIN = { timeout: 60_000, interval: 1 };

/** Moments of a kill: when a directory of the table has more entries than before the command. */
const MOMENTS = ["../.upkeep", "data", "_versions", "_indices"];

test(
  "a table stays whole when its optimization is killed, and another process resumes it",
  WITHIN,
  async (t) => {
    const root = await temporaryDirectory(t);
    const client = await openClient(t, root);
    const path = join(root, "data", "t.lance");
    await client.upload("createTable", "t", {}, rows([0]));
    await client.call("createTableScalarIndex", "t", { column: "id", indexType: "BTREE", name: "by_id" });
    let next = 1;
    const count = async (name: string) => (await readdir(join(path, name)).catch(() => [])).length;
    const ids = async () =>
      [
        ...(tableFromIPC(await client.query("t", { k: 1_000n, vector: { singleVector: [0, 0] } })).getChild(
          "id",
        ) ?? []),
      ]
        .map(Number)
        .sort((a, b) => a - b);
    const killed = new Set<string>();

    for (const moment of MOMENTS) {
      for (let added = 0; added < 8; added++) await client.upload("insertIntoTable", "t", {}, rows([next++]));
      // The lease of the process that was killed before has expired.
      await rm(join(root, "data", ".upkeep"), { recursive: true, force: true });
      const before = await count(moment);
      const { child, ended } = startProgram("optimize", "t", "--root", root, "--wait", "0ms");
      await Promise.race([expect.poll(() => count(moment), WITHIN).toBeGreaterThan(before), ended]);
      child.kill("SIGKILL");
      if ((await ended).signal === "SIGKILL") killed.add(moment);
      assert.deepEqual(
        await ids(),
        Array.from({ length: next }, (_, id) => id),
        `after a kill at ${moment}`,
      );
    }
    assert.ok(killed.size > 0, "no process was killed in time");

    const { context, close } = await openDirectory({ root, log: silent });
    t.onTestFinished(close);
    // The lease of the process that was killed last has expired.
    const clock = { now: async () => Date.now() + 61_000 };
    const leases = createUpkeepLeases(context.layout.baseKey, context.store, clock);
    for await (const { outcome } of optimizeTables(context, { tables: [["t"]], leases, waitMs: 0 })) {
      assert.notEqual(outcome, "failed");
    }
    const { fragmentStats } = await client.call("getTableStats", "t");
    assert.equal(fragmentStats?.numFragments, 1n);
    const { numUnindexedRows } = await client.call("describeTableIndexStats", "t", { indexName: "by_id" });
    assert.equal(numUnindexedRows, 0n);
    assert.deepEqual(
      await ids(),
      Array.from({ length: next }, (_, id) => id),
    );
  },
);
