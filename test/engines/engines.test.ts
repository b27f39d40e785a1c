import { join } from "node:path";
import { afterAll, beforeAll, describe, it } from "vitest";
import { pythonInterpreter } from "../../scripts/python-environment.ts";
import { type GatewayProcess, startGateway } from "../clients/support/gateway.ts";
import { ROOT, runTool } from "../clients/support/tools.ts";

/** Runs the session of an engine; it fails with the session's output. */
function runEngine(script: string, ...args: readonly string[]): Promise<string> {
  const path = join(import.meta.dirname, "python", script);
  return runTool(pythonInterpreter("engines"), [path, ...args], { env: { DAFT_PROGRESS_BAR: "0" } });
}

/** Returns the folder with the jars of Spark's connector. */
async function sparkJars(): Promise<string> {
  const pom = join(import.meta.dirname, "spark", "pom.xml");
  await runTool("mvn", ["-q", "-B", "-f", pom, "dependency:copy-dependencies"]);
  return join(ROOT, ".cache", "engines-spark");
}

for (const versioning of ["unmanaged", "managed"]) {
  describe(`engines on a catalog with ${versioning} versions`, () => {
    let gateway: GatewayProcess;
    beforeAll(async () => {
      gateway = await startGateway(...(versioning === "managed" ? ["--managed-versioning"] : []));
    });
    afterAll(() => gateway?.close());

    it("pylance writes fragments in several processes, builds an index in segments, and compacts", async () => {
      await runEngine("distributed.py", gateway.uri, versioning);
    });

    it("lance-ray writes, reads, indexes, adds a column and compacts", async () => {
      await runEngine("ray_session.py", gateway.uri);
    });

    it("Daft writes, reads and overwrites the location of a table", async () => {
      await runEngine("daft_session.py", gateway.uri);
    });

    it("lance-spark creates, fills, changes, indexes and optimizes tables with SQL", async () => {
      await runEngine("spark_session.py", gateway.uri, await sparkJars(), versioning);
    });
  });
}
