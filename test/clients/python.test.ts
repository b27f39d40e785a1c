import { after, before, describe, it } from "node:test";
import { type GatewayProcess, startGateway } from "./support/gateway.ts";
import { runPython } from "./support/python.ts";

describe("Python clients", () => {
  let gateway: GatewayProcess;
  before(async () => {
    gateway = await startGateway();
  });
  after(() => gateway.close());

  it("pylance's RestNamespace has an ordinary session, with the class of every error", async () => {
    await runPython("rest_namespace.py", gateway.uri);
  });

  it("lancedb.connect_namespace creates, opens, searches and drops", async () => {
    await runPython("lancedb_namespace.py", gateway.uri);
  });

  it("a gRPC client built from reflection alone describes a table", async () => {
    await runPython("reflection.py", gateway.address);
  });
});

describe("pylance beside the gateway", () => {
  let gateway: GatewayProcess;
  before(async () => {
    gateway = await startGateway();
  });
  after(() => gateway.close());

  it("DirectoryNamespace on the same base and the gateway see each other's changes", async () => {
    await runPython("same_catalog.py", gateway.uri, gateway.base);
  });
});
