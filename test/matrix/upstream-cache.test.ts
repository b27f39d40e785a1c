import assert from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, test } from "vitest";
import {
  DescribeTableResponseSchema,
  DropTableResponseSchema,
} from "../../src/gen/lance/namespace/v1/table_pb.ts";
import { errorEntry, LanceError } from "../../src/namespace/errors.ts";
import { CACHED_UPSTREAMS } from "../support/cached-upstreams.ts";
import { createGrpcClient } from "../support/grpc-client.ts";
import { type Outcome, ROUTED_CALLERS } from "../support/routed-callers.ts";
import { fakeBackend, startServer, type TestServer } from "../support/server.ts";

for (const [kind, open] of Object.entries(CACHED_UPSTREAMS)) {
  describe(`kept answers of a ${kind} upstream`, () => {
    let upstream: TestServer;
    let gateway: TestServer;
    let asked = 0;
    beforeAll(async () => {
      // The catalog shows each caller his own table, and nothing to mallory.
      const catalog = fakeBackend({
        async describeTable(_, { identity: { apiKey, authToken } }) {
          const caller = apiKey ?? authToken;
          if (caller === "mallory") throw new LanceError("PermissionDenied", "mallory may not see the table");
          asked += 1;
          return create(DescribeTableResponseSchema, { table: `${caller}'s, answer ${asked}` });
        },
        dropTable: async () => create(DropTableResponseSchema),
      });
      upstream = await startServer(catalog);
      gateway = await startServer(await open(upstream.port));
    });
    afterAll(async () => {
      await gateway.close();
      await upstream.close();
    });

    const tableOf = (outcome: Outcome) => ("table" in outcome ? outcome.table : outcome.text);

    test("every caller gets his own table over every protocol", async () => {
      asked = 0;
      for (const [protocol, call] of Object.entries(ROUTED_CALLERS)) {
        const describeAs = (headers: Record<string, string>) => call(gateway.port, { headers });
        assert.equal(tableOf(await describeAs({ "x-api-key": "alice" })), "alice's, answer 1", protocol);
        assert.equal(tableOf(await describeAs({ authorization: "Bearer bob" })), "bob's, answer 2", protocol);
        const refused = await describeAs({ "x-api-key": "mallory" });
        assert.ok("code" in refused && refused.code === errorEntry("PermissionDenied").code, protocol);
        // An equal word in another place is another credential.
        const others = tableOf(await describeAs({ authorization: "Bearer alice" }));
        assert.equal(others, "alice's, answer 3", protocol);
        const tenant = tableOf(await describeAs({ "x-api-key": "alice", "x-lance-tenant": "blue" }));
        assert.equal(tenant, "alice's, answer 4", protocol);
      }
      assert.equal(asked, 4);
    });

    test("all callers see the write of one of them", async () => {
      const call = ROUTED_CALLERS["gRPC"] as (typeof ROUTED_CALLERS)[string];
      const { client, close } = createGrpcClient(gateway.port);
      const ask = async (apiKey: string) =>
        tableOf(await call(gateway.port, { headers: { "x-api-key": apiKey }, id: ["n", "t"] }));
      const before = [await ask("alice"), await ask("bob")];
      await client.dropTable({ id: ["n", "other"] });
      assert.deepEqual([await ask("alice"), await ask("bob")], before);
      await client.dropTable({ id: ["n", "t"] });
      const after = [await ask("alice"), await ask("bob")];
      assert.notEqual(after[0], before[0]);
      assert.notEqual(after[1], before[1]);
      close();
    });
  });
}
