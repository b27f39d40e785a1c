import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { promisify } from "node:util";
import grpc, { type ServiceClientConstructor } from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";
import { type RecordBatch, RecordBatchReader, tableFromArrays, tableToIPC } from "apache-arrow";
import { type GatewayProcess, startGateway } from "./support/gateway.ts";

const proto = join(import.meta.dirname, "..", "..", "proto");
const files = loadSync("lance/namespace/v1/service.proto", { includeDirs: [proto], longs: Number });
const Client = (
  grpc.loadPackageDefinition(files) as unknown as {
    lance: { namespace: { v1: { LanceNamespaceService: ServiceClientConstructor } } };
  }
).lance.namespace.v1.LanceNamespaceService;

// biome-ignore lint/suspicious/noExplicitAny: the client's methods exist only at run time.
type Dynamic = any;

describe("a plain @grpc/grpc-js client", () => {
  let gateway: GatewayProcess;
  let client: Dynamic;
  before(async () => {
    gateway = await startGateway();
    client = new Client(gateway.address, grpc.credentials.createInsecure());
  });
  after(async () => {
    client.close();
    await gateway.close();
  });

  const call = (name: string, request: object): Promise<Dynamic> =>
    promisify(client[name].bind(client))(request);

  function upload(name: string, request: object, data: Uint8Array): Promise<Dynamic> {
    return new Promise((resolve, reject) => {
      const stream = client[name]((error: Error | null, answer: unknown) =>
        error ? reject(error) : resolve(answer),
      );
      stream.write({ ...request, data: { data: data.subarray(0, 10) } });
      stream.write({ data: { data: data.subarray(10) } });
      stream.end();
    });
  }

  async function query(request: object): Promise<RecordBatch[]> {
    const chunks: Uint8Array[] = [];
    for await (const message of client.queryTable(request)) chunks.push(message.data.data);
    return [...(await RecordBatchReader.from(Buffer.concat(chunks)))];
  }

  it("creates a table from a stream, inserts, counts and reads it back", async () => {
    const data = tableToIPC(tableFromArrays({ id: Int32Array.of(1, 2, 3) }), "stream");
    await call("createNamespace", { id: ["grpc"] });
    const created = await upload("createTable", { id: ["grpc", "t"] }, data);
    assert.equal(created.version, 1);
    const inserted = await upload("insertIntoTable", { id: ["grpc", "t"] }, data);
    assert.equal(inserted.numInsertedRows, 3);
    assert.equal((await call("countTableRows", { id: ["grpc", "t"], predicate: "id > 1" })).count, 4);
    const batches = await query({ id: ["grpc", "t"], filter: "id = 2" });
    assert.equal(
      batches.reduce((rows, batch) => rows + batch.numRows, 0),
      2,
    );
  });

  it("tells a missing table by its status and by the Lance code in the details", async () => {
    const error: Dynamic = await call("describeTable", { id: ["missing"] }).catch((thrown) => thrown);
    assert.equal(error.code, grpc.status.NOT_FOUND);
    assert.ok(error.metadata.get("grpc-status-details-bin").length === 1);
  });

  it("names an operation that the backend does not have as unimplemented", async () => {
    const error: Dynamic = await call("renameTable", { id: ["t"], newTableName: "u" }).catch(
      (thrown) => thrown,
    );
    assert.equal(error.code, grpc.status.UNIMPLEMENTED);
  });
});
