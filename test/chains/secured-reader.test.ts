import assert from "node:assert/strict";
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { inspect } from "node:util";
import { afterAll, beforeAll, describe, test } from "vitest";
import { isReadAction } from "../../src/namespace/call/principal.ts";
import { errorEntry } from "../../src/namespace/errors.ts";
import type { Operation } from "../../src/namespace/lance-namespace.ts";
import { OPERATIONS } from "../../src/namespace/operations/operations.ts";
import { contractSuite } from "../contract/suite.ts";
import { matrixSuite } from "../matrix/suite.ts";
import { people, personStream } from "../support/arrow.ts";
import { failureOf, withRefusedChanges } from "../support/callers-by-role.ts";
import type { CallError, LanceClient, ProtocolClient } from "../support/client.ts";
import { ALL_OPERATIONS, callBare } from "../support/operations.ts";
import { createProtocolClients, PROTOCOLS } from "../support/protocols.ts";
import { type SecuredGateway, startSecuredGateway } from "../support/secured-gateway.ts";

type Clients = Readonly<Record<string, ProtocolClient>>;

/** Starts a gateway and opens clients of both roles for every protocol. */
async function openBoth() {
  const gateway = await startSecuredGateway("--table-upkeep=off");
  const [owner, reader] = [gateway.headers.owner, gateway.headers.reader].map((headers) =>
    createProtocolClients(gateway.port, headers),
  ) as [Clients, Clients];
  const clientOf = (clients: Clients, protocol: string) => clients[protocol]?.client as LanceClient;
  return {
    gateway,
    owner: (protocol: string) => clientOf(owner, protocol),
    reader: (protocol: string) => clientOf(reader, protocol),
    /** Returns the client that reads as the reader and is refused every change before the owner makes it. */
    both: (protocol: string) => withRefusedChanges(clientOf(reader, protocol), clientOf(owner, protocol)),
    async close() {
      for (const { close } of [owner, reader].flatMap(Object.values<ProtocolClient>)) close();
      await gateway.close();
    },
  };
}

contractSuite("a secured gateway, as a reader whose changes an owner makes", {
  async open() {
    const { both, close } = await openBoth();
    return { client: both("gRPC"), close };
  },
});

matrixSuite("a secured gateway, as a reader whose changes an owner makes", async () => {
  const { both, close } = await openBoth();
  const clients = Object.keys(PROTOCOLS).map((protocol) => [protocol, { client: both(protocol) }] as const);
  return { clients: Object.fromEntries(clients), close };
});

describe("a reader of a secured gateway", () => {
  let world: Awaited<ReturnType<typeof openBoth>>;
  const table = ["team", "people"];
  beforeAll(async () => {
    world = await openBoth();
    const owner = world.owner("gRPC");
    await owner.createNamespace({ id: ["team"] });
    await owner.createTable({ id: table }, personStream(people(5)));
    await owner.createTableTag({ id: table, tag: "first", version: 1n });
  });
  afterAll(() => world?.close());

  for (const protocol of Object.keys(PROTOCOLS)) {
    test(`${protocol}: is refused every operation that changes anything, and changes no file`, async () => {
      const before = await filesOf(world.gateway);
      for (const operation of ALL_OPERATIONS) {
        if (isReadAction(OPERATIONS[operation].action)) continue;
        const failure = await failureOf(callBare(world.reader(protocol), operation, table));
        const { code, httpStatus, grpcCode } = errorEntry("PermissionDenied");
        assert.deepEqual(failure, protocol === "REST" ? { code, httpStatus } : { code, grpcCode }, operation);
      }
      assert.deepEqual(await filesOf(world.gateway), before);
    });

    test(`${protocol}: gets the answer of an owner to every operation that changes nothing`, async () => {
      for (const operation of ALL_OPERATIONS) {
        if (!isReadAction(OPERATIONS[operation].action)) continue;
        const [owner, reader] = await Promise.all(
          [world.owner(protocol), world.reader(protocol)].map((client) =>
            callBare(client, operation, table).catch((error: unknown) => (error as CallError).failure),
          ),
        );
        assert.ok(owner !== undefined, operation);
        assert.deepEqual(comparable(operation, reader), comparable(operation, owner), operation);
      }
    });
  }
});

/** Returns an answer without the times that a query took. */
function comparable(operation: Operation, answer: unknown): unknown {
  if (operation !== "analyzeTableQueryPlan") return answer;
  return inspect(answer).replaceAll(/\d[\d.]*\S*/g, "N");
}

/** Returns the files of the catalog and its tables, with their sizes and the times of their last changes. */
async function filesOf({ root }: SecuredGateway): Promise<readonly string[]> {
  const entries = await readdir(root, { recursive: true, withFileTypes: true });
  const files = entries
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name));
  const lines = files.map(async (path) => {
    const { size, mtimeMs } = await stat(path);
    return `${path} ${size} ${mtimeMs}`;
  });
  return (await Promise.all(lines)).toSorted();
}
