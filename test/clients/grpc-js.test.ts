import assert from "node:assert/strict";
import { join } from "node:path";
import { promisify } from "node:util";
import { fromBinary } from "@bufbuild/protobuf";
import { anyUnpack } from "@bufbuild/protobuf/wkt";
import grpc, { type ServiceClientConstructor } from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";
import { RecordBatchReader } from "apache-arrow";
import { afterAll, beforeAll, describe, it } from "vitest";
import { StatusSchema } from "../../src/gen/google/rpc/status_pb.ts";
import { ErrorResponseSchema } from "../../src/gen/lance/namespace/v1/common_pb.ts";
import { otherStream, people, personStream } from "../support/arrow.ts";
import { type GatewayProcess, startGateway } from "./support/gateway.ts";
import { installedVersion } from "./support/installed.ts";
import { createSession, type Session } from "./support/session.ts";

const proto = join(import.meta.dirname, "..", "..", "proto");
const files = loadSync("lance/namespace/v1/service.proto", {
  includeDirs: [proto],
  longs: Number,
  enums: String,
});
const Client = (
  grpc.loadPackageDefinition(files) as unknown as {
    lance: { namespace: { v1: { LanceNamespaceService: ServiceClientConstructor } } };
  }
).lance.namespace.v1.LanceNamespaceService;

// biome-ignore lint/suspicious/noExplicitAny: the client's methods exist only at run time.
type Dynamic = any;

const [ns, id] = [["grpc"], ["grpc", "people"]];

describe("a plain @grpc/grpc-js client", () => {
  let gateway: GatewayProcess;
  let client: Dynamic;
  let session: Session;
  beforeAll(async () => {
    gateway = await startGateway();
    client = new Client(gateway.address, grpc.credentials.createInsecure());
  });
  afterAll(async () => {
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

  /** The ids of the rows of a result. */
  async function query(request: object): Promise<number[]> {
    const chunks: Uint8Array[] = [];
    for await (const message of client.queryTable({ id, ...request })) chunks.push(message.data.data);
    const batches = [...(await RecordBatchReader.from(Buffer.concat(chunks)))];
    return batches.flatMap((batch) => [...(batch.getChild("id") ?? [])]);
  }

  /** Fails with a code of the error table, which is in the details of the status. */
  async function rejects(code: number, work: Promise<unknown>): Promise<void> {
    const error: Dynamic = await work.then(
      () => assert.fail("the call succeeded"),
      (thrown) => thrown,
    );
    const [details] = error.metadata.get("grpc-status-details-bin");
    const answers = fromBinary(StatusSchema, details).details.map((each) =>
      anyUnpack(each, ErrorResponseSchema),
    );
    assert.deepEqual(
      answers.map((answer) => answer?.code),
      [code],
    );
  }

  const count = async (request: object = {}) => (await call("countTableRows", { id, ...request })).count;

  it("has an ordinary session", async (t) => {
    const version = installedVersion("@grpc/grpc-js");
    session = createSession("@grpc/grpc-js", version, (text) => t.annotate(text));
    await catalog();
    await rows();
    await indicesAndColumns();
    await versions();
    await endings();
    session.end();
  });

  async function catalog(): Promise<void> {
    const properties = { owner: "ada" };
    await session.check("createNamespace", async () =>
      assert.deepEqual((await call("createNamespace", { id: ns, properties })).properties, properties),
    );
    await session.check("createNamespace that is there", () =>
      rejects(2, call("createNamespace", { id: ns })),
    );
    await session.check("createNamespace below", () => call("createNamespace", { id: [...ns, "inner"] }));
    await session.check("describeNamespace", async () =>
      assert.deepEqual((await call("describeNamespace", { id: ns })).properties, properties),
    );
    await session.check("listNamespaces", async () =>
      assert.deepEqual((await call("listNamespaces", { id: ns })).namespaces, ["inner"]),
    );
    await session.check("namespaceExists of none", () =>
      rejects(1, call("namespaceExists", { id: ["nowhere"] })),
    );
    await session.check("createTable", async () =>
      assert.equal((await upload("createTable", { id }, personStream(people(3, 1)))).version, 1),
    );
    await session.check("createTable that is there", () =>
      rejects(5, upload("createTable", { id }, personStream(people(3, 1)))),
    );
    await session.check("declareTable", async () =>
      assert.ok((await call("declareTable", { id: [...ns, "declared"] })).location),
    );
    await session.check("listTables", async () =>
      assert.deepEqual((await call("listTables", { id: ns })).tables, ["declared", "people"]),
    );
    await session.check("tableExists", () => call("tableExists", { id }));
    await session.check("describeTable", async () => {
      const { schema } = await call("describeTable", { id, loadDetailedMetadata: true });
      assert.deepEqual(
        schema.fields.map(({ name }: { name: string }) => name),
        ["id", "name", "vector"],
      );
    });
    await session.check("describeTable of none", () => rejects(4, call("describeTable", { id: ["none"] })));
  }

  async function rows(): Promise<void> {
    await session.check("insertIntoTable", async () =>
      assert.equal((await upload("insertIntoTable", { id }, personStream(people(2, 10)))).numInsertedRows, 2),
    );
    await session.check("insertIntoTable of other columns", () =>
      rejects(20, upload("insertIntoTable", { id }, otherStream())),
    );
    await session.check("countTableRows", async () => assert.equal(await count(), 5));
    await session.check("countTableRows by a predicate", async () =>
      assert.equal(await count({ predicate: "id >= 10" }), 2),
    );
    await session.check("countTableRows of a version", async () =>
      assert.equal(await count({ version: 1 }), 3),
    );
    await session.check("countTableRows of no version", () => rejects(11, count({ version: 99 })));
    await session.check("mergeInsertIntoTable", async () => {
      const request = { id, on: ["id"], whenMatchedUpdateAll: true, whenNotMatchedInsertAll: true };
      const merged = await upload("mergeInsertIntoTable", request, personStream(people(2, 11)));
      assert.deepEqual([merged.numUpdatedRows, merged.numInsertedRows], [1, 1]);
    });
    await session.check("updateTable", async () => {
      const updates = [{ column: "name", expression: "'Ada'" }];
      assert.equal((await call("updateTable", { id, predicate: "id = 1", updates })).updatedRows, 1);
    });
    await session.check("deleteFromTable", async () =>
      assert.equal((await call("deleteFromTable", { id, predicate: "id = 12" })).version, 5),
    );
    await session.check("queryTable for the nearest", async () =>
      assert.deepEqual(await query({ vector: { singleVector: [1.1, 0] }, k: 1 }), [1]),
    );
    await session.check("queryTable by a filter", async () =>
      assert.deepEqual((await query({ filter: "id >= 10" })).sort(), [10, 11]),
    );
    await session.check("queryTable by nonsense", () => rejects(13, query({ filter: "id >" })));
    await session.check("explainTableQueryPlan", async () =>
      assert.ok((await call("explainTableQueryPlan", { id, query: { filter: "id > 1" } })).plan),
    );
    await session.check("analyzeTableQueryPlan", async () =>
      assert.match((await call("analyzeTableQueryPlan", { id, k: 1 })).analysis, /rows/),
    );
    await session.check("getTableStats", async () =>
      assert.equal((await call("getTableStats", { id })).numRows, 5),
    );
  }

  async function indicesAndColumns(): Promise<void> {
    await session.check("createTableScalarIndex", () =>
      call("createTableScalarIndex", { id, column: "id", indexType: "BTREE" }),
    );
    await session.check("listTableIndices", async () =>
      assert.deepEqual((await call("listTableIndices", { id })).indexes[0].columns, ["id"]),
    );
    await session.check("describeTableIndexStats", async () =>
      assert.equal((await call("describeTableIndexStats", { id, indexName: "id_idx" })).numIndexedRows, 5),
    );
    await session.check("dropTableIndex", () => call("dropTableIndex", { id, indexName: "id_idx" }));
    await session.check("dropTableIndex of none", () =>
      rejects(6, call("dropTableIndex", { id, indexName: "id_idx" })),
    );
    await session.check("alterTableAddColumns", async () => {
      await call("alterTableAddColumns", { id, newColumns: [{ name: "twice", expression: "id * 2" }] });
      assert.equal(await count({ predicate: "twice = id * 2" }), 5);
    });
    await session.check("alterTableAlterColumns", () =>
      call("alterTableAlterColumns", { id, alterations: [{ path: "twice", rename: "double" }] }),
    );
    await session.check("updateTableSchemaMetadata", async () => {
      const metadata = { made: "here" };
      assert.deepEqual((await call("updateTableSchemaMetadata", { id, metadata })).metadata, metadata);
    });
    await session.check("alterTableDropColumns", () =>
      call("alterTableDropColumns", { id, columns: ["double"] }),
    );
    await session.check("alterTableDropColumns of none", () =>
      rejects(12, call("alterTableDropColumns", { id, columns: ["double"] })),
    );
  }

  async function versions(): Promise<void> {
    await session.check("listTableVersions", async () => {
      const { versions: found } = await call("listTableVersions", { id, descending: true });
      assert.equal(found.at(-1).version, 1);
    });
    await session.check("createTableTag", () => call("createTableTag", { id, tag: "first", version: 1 }));
    await session.check("getTableTagVersion", async () =>
      assert.equal((await call("getTableTagVersion", { id, tag: "first" })).version, 1),
    );
    await session.check("listTableTags", async () =>
      assert.deepEqual(Object.keys((await call("listTableTags", { id })).tags), ["first"]),
    );
    await session.check("deleteTableTag", () => call("deleteTableTag", { id, tag: "first" }));
    await session.check("createTableBranch", () =>
      call("createTableBranch", { id, name: "side", fromVersion: 1 }),
    );
    await session.check("insertIntoTable on a branch", async () => {
      await upload("insertIntoTable", { id, branch: "side" }, personStream(people(4, 50)));
      assert.equal(await count({ branch: "side" }), 7);
    });
    await session.check("deleteTableBranch", () => call("deleteTableBranch", { id, name: "side" }));
    await session.check("restoreTable", async () => {
      await call("restoreTable", { id, version: 1 });
      assert.equal(await count(), 3);
    });
  }

  async function endings(): Promise<void> {
    const again = [...ns, "again"];
    await session.check("renameTable", () => call("renameTable", { id, newTableName: "folk" }));
    await session.check("deregisterTable and registerTable", async () => {
      const { location } = await call("deregisterTable", { id: [...ns, "folk"] });
      const relative = location.replace(/\/$/, "").split("/").at(-1);
      await call("registerTable", { id: again, location: relative });
    });
    await session.check("dropTable", () => call("dropTable", { id: again }));
    await session.check("dropTable of none", () => rejects(4, call("dropTable", { id: again })));
    await session.check("dropNamespace that is not empty", () =>
      rejects(3, call("dropNamespace", { id: ns })),
    );
    await session.check("dropNamespace with everything", () =>
      call("dropNamespace", { id: ns, behavior: "DROP_NAMESPACE_BEHAVIOR_CASCADE" }),
    );
  }
});
