import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { create } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, test } from "vitest";
import { untilAborted } from "../../src/backends/dir/concurrency/wait.ts";
import { CreateTableResponseSchema } from "../../src/gen/lance/namespace/v1/data_pb.ts";
import { people, personStream } from "../support/arrow.ts";
import { CallError, type ProtocolClient } from "../support/client.ts";
import { createProtocolClients, PROTOCOLS } from "../support/protocols.ts";
import { fakeBackend, startServer, type TestServer } from "../support/server.ts";

const DEADLINE_MS = 50;
const DEADLINE_EXCEEDED = 4;

const backend = fakeBackend({
  namespaceExists: (_, { signal }) => untilAborted(new Promise(() => {}), signal),
  async createTable(_, data) {
    for await (const _piece of data);
    // The backend takes longer than the default deadline.
    await sleep(4 * DEADLINE_MS);
    return create(CreateTableResponseSchema);
  },
});

describe("calls that bring no deadline", () => {
  let server: TestServer;
  let clients: Readonly<Record<string, ProtocolClient>>;
  beforeAll(async () => {
    server = await startServer(backend, { defaultDeadlineMs: DEADLINE_MS });
    clients = createProtocolClients(server.port);
  });
  afterAll(async () => {
    for (const client of Object.values(clients)) client.close();
    await server.close();
  });

  for (const protocol of Object.keys(PROTOCOLS)) {
    test(`${protocol}: get the server's, unless they carry an Arrow body`, { timeout: 60_000 }, async () => {
      const { client } = clients[protocol] as ProtocolClient;
      await assert.rejects(client.namespaceExists(), (error) => {
        assert.ok(error instanceof CallError);
        const { httpStatus, grpcCode } = error.failure;
        return httpStatus === 504 || grpcCode === DEADLINE_EXCEEDED;
      });
      await client.createTable({ id: ["t"] }, personStream(people(1)));
    });
  }
});
