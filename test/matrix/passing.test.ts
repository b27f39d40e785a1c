import assert from "node:assert/strict";
import { pino } from "pino";
import { afterAll, beforeAll, describe, test } from "vitest";
import { createGrpcBackend } from "../../src/backends/grpc/index.ts";
import { createRestBackend } from "../../src/backends/rest/index.ts";
import { errorEntry } from "../../src/namespace/errors.ts";
import type { Interceptor } from "../../src/pipeline/call/interceptor.ts";
import { people, personStream } from "../support/arrow.ts";
import { CallError, type ProtocolClient } from "../support/client.ts";
import { createGrpcClient } from "../support/grpc-client.ts";
import { createRestClient } from "../support/rest-client.ts";
import {
  type DirectoryServer,
  startDirectoryServer,
  startServer,
  type TestServer,
} from "../support/server.ts";
import { CATALOG_SCENARIOS } from "./catalog-scenarios.ts";
import { DATA_SCENARIOS } from "./data-scenarios.ts";
import { REF_SCENARIOS } from "./ref-scenarios.ts";
import { RENAME_SCENARIOS } from "./rename-scenarios.ts";
import { SCHEMA_SCENARIOS } from "./schema-scenarios.ts";
import { TRANSACTION_SCENARIOS } from "./transaction-scenarios.ts";
import { VERSION_SCENARIOS } from "./version-scenarios.ts";

const log = pino({ level: "silent" });
/** Without the scenarios in which the engine takes long; property tests compare the answers of every operation. */
const SCENARIOS = [
  ...CATALOG_SCENARIOS,
  ...DATA_SCENARIOS,
  ...VERSION_SCENARIOS,
  ...REF_SCENARIOS,
  ...TRANSACTION_SCENARIOS,
  ...RENAME_SCENARIOS,
  ...SCHEMA_SCENARIOS,
];

/** An interceptor in front of which no answer passes. */
const reads: Interceptor = (call, request, next) => next(call, request);

const KINDS = {
  REST: {
    backend: (port: number) => createRestBackend({ uri: `http://127.0.0.1:${port}`, log }),
    client: createRestClient,
  },
  gRPC: {
    backend: (port: number) => createGrpcBackend({ addresses: [`127.0.0.1:${port}`], log }),
    client: createGrpcClient,
  },
} as const;

/** A gateway in front of the upstream, and a client of its protocol. All namespaces have equal lengths. */
interface Side {
  readonly namespace: string;
  readonly gateway: TestServer;
  readonly client: ProtocolClient;
}

for (const [protocol, kind] of Object.entries(KINDS)) {
  describe(`answers of a ${protocol} upstream, passed on and read`, () => {
    let upstream: DirectoryServer;
    const sides: Side[] = [];

    beforeAll(async () => {
      upstream = await startDirectoryServer();
      for (const [index, interceptors] of [[], [reads]].entries()) {
        const gateway = await startServer(
          await kind.backend(upstream.port),
          {},
          { plugins: [{ interceptors }] },
        );
        const namespace = `side${index}`;
        const client = kind.client(gateway.port);
        sides.push({ namespace, gateway, client });
        await client.client.createNamespace({ id: [namespace], properties: { owner: "the matrix" } });
        await client.client.createNamespace({ id: [namespace, "child"] });
        await client.client.createTable(
          { id: [namespace, "t"], properties: { a: "1" } },
          personStream(people(5)),
        );
        await client.client.declareTable({ id: [namespace, "d"] });
      }
    });
    afterAll(async () => {
      for (const { client, gateway } of sides) {
        client.close();
        await gateway.close();
      }
      await upstream.close();
    });

    for (const { operation, name, fails, run } of SCENARIOS) {
      test(`${operation} ${name} is alike`, async () => {
        const [passed, read] = await Promise.all(
          sides.map(({ namespace, client }) =>
            run(client.client, namespace).then(
              (answer) => normalized(namespace, answer),
              (error: unknown) => (error instanceof CallError ? { code: error.failure.code } : error),
            ),
          ),
        );
        assert.deepEqual(passed, read);
        if (fails !== undefined) assert.deepEqual(passed, { code: errorEntry(fails).code });
        else assert.ok(!(passed instanceof Error), String(passed));
      });
    }
  });
}

/** Removes from an answer the parts that may differ: the namespace and the random part of a location. */
function normalized(namespace: string, answer: unknown): unknown {
  const text = JSON.stringify(answer, (_, value) => (typeof value === "bigint" ? Number(value) : value));
  return JSON.parse(text.replaceAll(namespace, "NAMESPACE").replaceAll(/\b[0-9a-v]{14}_/g, "HASH_"));
}
