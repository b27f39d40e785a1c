import assert from "node:assert/strict";
import { afterAll, beforeAll, describe, it } from "vitest";
import { type Program, startProgram } from "../../support/program.ts";
import { runPython } from "../support/python.ts";
import { BUCKET, type StoreServer, startS3 } from "../support/store-servers.ts";

describe("one bucket of S3 with several writers", () => {
  let server: StoreServer;
  beforeAll(async () => {
    server = await startS3();
  });
  afterAll(() => server?.close());

  function startGateway(root: string): Program {
    const options = Object.entries(server.options).map(([key, value]) => `--storage-option=${key}=${value}`);
    return startProgram(
      "serve",
      "--port=0",
      `--root=${root}`,
      "--log-level=warn",
      "--names=unicode",
      ...options,
    );
  }

  it("two gateways and pylance's own directory catalog lose and double nothing", async () => {
    const root = `s3://${BUCKET}/peers`;
    const gateways = [startGateway(root), startGateway(root)];
    try {
      const ports = await Promise.all(gateways.map((gateway) => gateway.listening()));
      const addresses = ports.map((port) => `http://127.0.0.1:${port}`);
      await runPython("bucket_peers.py", JSON.stringify(server.options), `${root}/data`, ...addresses);
    } finally {
      for (const { child } of gateways) child.kill("SIGTERM");
    }
    for (const { ended } of gateways) {
      const { code, stdout, stderr } = await ended;
      assert.equal(code, 0, stderr);
      assert.match(stdout, /serves s3:\/\/lance\/peers\n/);
      assert.equal((stdout + stderr).includes(server.options["aws_secret_access_key"] as string), false);
    }
  });
});
