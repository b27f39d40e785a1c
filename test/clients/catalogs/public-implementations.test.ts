import assert from "node:assert/strict";
import { join } from "node:path";
import { describe, it } from "vitest";
import { pythonInterpreter } from "../../../scripts/python-environment.ts";
import { startIcebergServer } from "../../support/catalogs/iceberg-server.ts";
import { startUnityServer } from "../../support/catalogs/unity-server.ts";
import { startProgramIn } from "../../support/program.ts";
import { startGlueAccount } from "../support/glue.ts";
import { runTool } from "../support/tools.ts";

/** Addresses and options of an implementation and a gateway in front of one catalog. */
interface Compared {
  /** Class of `lance_namespace_impls`. */
  readonly implementation: string;
  readonly properties: Readonly<Record<string, string>>;
  readonly flags: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  /** Names in front of those that are made, for the implementation and for the gateway. */
  readonly parents: readonly [readonly string[], readonly string[]];
  close(): Promise<void>;
}

const CATALOGS: Readonly<Record<string, () => Promise<Compared>>> = {
  async glue() {
    const { endpoint, region, credentials, close } = await startGlueAccount();
    return {
      implementation: "GlueNamespace",
      properties: {
        endpoint,
        region,
        access_key_id: credentials.accessKeyId,
        secret_access_key: credentials.secretAccessKey,
      },
      flags: ["--backend=glue", `--uri=${endpoint}`, `--glue-region=${region}`],
      environment: {
        AWS_ACCESS_KEY_ID: credentials.accessKeyId,
        AWS_SECRET_ACCESS_KEY: credentials.secretAccessKey,
      },
      parents: [[], []],
      close,
    };
  },

  async "a simulation of Polaris"() {
    const { url, warehouse, close } = await startIcebergServer("polaris");
    return {
      implementation: "PolarisNamespace",
      properties: { "polaris.endpoint": url },
      flags: ["--backend=polaris", `--uri=${url}`, `--warehouse=${warehouse}`],
      parents: [[warehouse], []],
      close,
    };
  },

  async "a simulation of Unity Catalog"() {
    const { url, catalog, close } = await startUnityServer();
    return {
      implementation: "UnityNamespace",
      properties: { "unity.endpoint": url },
      flags: ["--backend=unity", `--uri=${url}`],
      parents: [[catalog], [catalog]],
      close,
    };
  },
};

describe("the public implementations of lance-namespace", () => {
  for (const [name, open] of Object.entries(CATALOGS)) {
    it(`see the same tables of ${name} as the gateway`, async ({ onTestFinished }) => {
      const { implementation, properties, flags, environment = {}, parents, close } = await open();
      onTestFinished(close);
      const gateway = startProgramIn(environment, "serve", "--port=0", ...flags);
      onTestFinished(() => {
        gateway.child.kill("SIGTERM");
      });
      const address = `http://127.0.0.1:${await gateway.listening()}`;
      const before = parents.map((parent) => JSON.stringify(parent));
      const script = join(import.meta.dirname, "same_tables.py");
      const args = [script, implementation, JSON.stringify(properties), address, ...before];
      const said = await runTool(pythonInterpreter("catalogs"), args);
      assert.equal(said.trim(), "the same");
    });
  }
});
