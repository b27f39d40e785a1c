import { join } from "node:path";
import { afterAll, beforeAll, describe, it } from "vitest";
import { type GatewayProcess, startGateway } from "./support/gateway.ts";
import { runPython, runPythonSession } from "./support/python.ts";
import { ROOT } from "./support/tools.ts";

describe("Python clients", () => {
  let gateway: GatewayProcess;
  beforeAll(async () => {
    gateway = await startGateway();
  });
  afterAll(() => gateway.close());

  it("pylance's RestNamespace has an ordinary session, with the class of every error", async () => {
    await runPythonSession("rest_namespace.py", gateway.uri);
  });

  it("the generated urllib3 client has an ordinary session", async () => {
    await runPythonSession("urllib3_client.py", gateway.uri);
  });

  it("generated gRPC stubs have an ordinary session", async () => {
    const stubs = join(ROOT, ".cache", "python-stubs");
    await runPythonSession("grpc_client.py", gateway.address, join(ROOT, "proto"), stubs);
  });

  it("pyarrow's client of Arrow Flight has an ordinary session", async () => {
    await runPython("flight_session.py", gateway.address);
  });

  it("ADBC's driver for Flight SQL has an ordinary session", async () => {
    await runPython("flight_sql_session.py", gateway.address);
  });

  it("the queries of TPC-H through ADBC have the rows that DuckDB has on Parquet", async () => {
    const own = await startGateway();
    try {
      await runPython("tpch_session.py", own.address, "0.01", "4");
    } finally {
      await own.close();
    }
  });

  it("lancedb.connect_namespace has an ordinary session", async () => {
    await runPythonSession("lancedb_namespace.py", gateway.uri);
  });

  it("a gRPC client built from reflection alone describes a table", async () => {
    await runPython("reflection.py", gateway.address);
  });
});

describe("LanceDB's remote client in Python", () => {
  let gateway: GatewayProcess;
  beforeAll(async () => {
    gateway = await startGateway();
  });
  afterAll(() => gateway.close());

  it("lancedb.connect with a host override has an ordinary session", async () => {
    await runPythonSession("lancedb_remote.py", gateway.uri);
  });

  it("runs SQL by Flight SQL", async () => {
    await runPython("lancedb_sql.py", gateway.uri);
  });

  it("reads no blob that another writer has named outside of its table", async () => {
    await runPython("outside_blobs.py", gateway.uri, gateway.base);
  });
});

describe("pylance beside the gateway", () => {
  let gateway: GatewayProcess;
  beforeAll(async () => {
    gateway = await startGateway();
  });
  afterAll(() => gateway.close());

  it("DirectoryNamespace on the same base and the gateway see each other's changes", async () => {
    await runPython("same_catalog.py", gateway.uri, gateway.base);
  });

  it("reads and keeps indices that the gateway began", async () => {
    await runPython("grown_indices.py", gateway.uri);
  });
});
