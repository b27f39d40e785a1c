import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { connect } from "../../src/client/index.ts";
import { createGateway } from "../../src/gateway/create-gateway.ts";
import { ListTablesResponseSchema } from "../../src/gen/lance/namespace/v1/table_pb.ts";
import { startDirectoryServer } from "../support/server.ts";
import { clientSuite } from "./suite.ts";

clientSuite("connect", async () => {
  const server = await startDirectoryServer();
  const namespace = await connect("connect", { uri: `http://127.0.0.1:${server.port}` });
  return {
    namespace,
    async close() {
      await namespace.close();
      await server.close();
    },
  };
});

test("an answer that the server compresses, because fetch accepts that, is read", async (t) => {
  const tables = Array.from({ length: 1_000 }, (_, at) => `table_${at}`);
  const gateway = await createGateway({
    backend: {
      name: "many",
      operations: { listTables: async () => create(ListTablesResponseSchema, { tables }) },
      ready: async () => true,
      close: async () => {},
    },
    port: 0,
  });
  t.onTestFinished(async () => void (await gateway.close()));
  await using namespace = await connect("connect", { uri: `http://127.0.0.1:${gateway.address.port}` });
  expect((await namespace.listTables({})).tables).toEqual(tables);
});
