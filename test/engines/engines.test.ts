import assert from "node:assert/strict";
import { join } from "node:path";
import { afterAll, beforeAll, describe, it } from "vitest";
import { pythonInterpreter } from "../../scripts/python-environment.ts";
import { runTool } from "../clients/support/tools.ts";
import { CATALOGS, type EngineCatalog } from "./catalogs.ts";
import { sparkJars } from "./spark-jars.ts";

for (const { name, managed, open } of CATALOGS) {
  describe(`engines on ${name}`, () => {
    let catalog: EngineCatalog;
    beforeAll(async () => {
      catalog = await open();
    });
    afterAll(() => catalog?.close());

    /** Runs the session of an engine; it fails with the session's output. */
    function run(script: string, ...args: readonly string[]): Promise<string> {
      const path = join(import.meta.dirname, "python", script);
      const env = { DAFT_PROGRESS_BAR: "0", ...catalog.credentials };
      return runTool(pythonInterpreter("engines"), [path, catalog.uri, ...args], { env });
    }

    /**
     * Checks which operations a session has committed past the catalog, in their order. The gateway says nothing of those
     * before its first look at the versions of a table.
     */
    async function expectPast(table: string, operations: readonly string[]): Promise<void> {
      assert.deepEqual(await catalog.operationsPast(table), managed ? operations : []);
    }

    it("pylance writes fragments in several processes, builds an index in segments, and compacts", async () => {
      await run("distributed.py", managed ? "managed" : "unmanaged");
      await expectPast("distributed$t", ["Append"]);
    });

    it("lance-ray writes, reads, indexes, adds a column and compacts", async () => {
      await run("ray_session.py");
      await expectPast("ray$t", ["CreateIndex", "Merge", "ReserveFragments", "Rewrite", "Overwrite"]);
    });

    it("Daft writes, reads, indexes, compacts and overwrites a table", async () => {
      await run("daft_session.py");
      await expectPast("daft$t", ["Append"]);
    });

    it("lance-spark creates, fills, changes, indexes and optimizes tables with SQL", async () => {
      await run("spark_session.py", await sparkJars());
      await expectPast("spark$t", ["ReserveFragments", "Rewrite"]);
    });
  });
}
