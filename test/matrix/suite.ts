import assert from "node:assert/strict";
import { afterAll, beforeAll, describe, test } from "vitest";
import { type ErrorName, errorEntry } from "../../src/namespace/errors.ts";
import { people, personStream } from "../support/arrow.ts";
import { CallError, type LanceClient, type ProtocolClient } from "../support/client.ts";
import { ALL_OPERATIONS, callBare, FIRST_CUT } from "../support/operations.ts";
import { PROTOCOLS } from "../support/protocols.ts";
import { CATALOG_SCENARIOS } from "./catalog-scenarios.ts";
import { CHANGE_SCENARIOS } from "./change-scenarios.ts";
import { DATA_SCENARIOS } from "./data-scenarios.ts";
import { INDEX_SCENARIOS } from "./index-scenarios.ts";
import { JOB_SCENARIOS } from "./job-scenarios.ts";
import { REF_SCENARIOS } from "./ref-scenarios.ts";
import { RENAME_SCENARIOS } from "./rename-scenarios.ts";
import type { Scenario } from "./scenario.ts";
import { SCHEMA_SCENARIOS } from "./schema-scenarios.ts";
import { TRANSACTION_SCENARIOS } from "./transaction-scenarios.ts";
import { VERSION_SCENARIOS } from "./version-scenarios.ts";

const protocols = Object.keys(PROTOCOLS);
const scenarios = [
  ...CATALOG_SCENARIOS,
  ...DATA_SCENARIOS,
  ...CHANGE_SCENARIOS,
  ...VERSION_SCENARIOS,
  ...REF_SCENARIOS,
  ...TRANSACTION_SCENARIOS,
  ...RENAME_SCENARIOS,
  ...SCHEMA_SCENARIOS,
  ...INDEX_SCENARIOS,
  ...JOB_SCENARIOS,
];

/** Returns the namespace of a wire. All have equal lengths, so that answers differ in nothing else. */
function namespaceOf(protocol: string): string {
  return `wire${protocols.indexOf(protocol)}`;
}

/**
 * Removes from an answer the parts that may differ: the wire's namespace, its headers, and the random part of a
 * location.
 */
function normalized(protocol: string, answer: unknown): unknown {
  const text = JSON.stringify(answer, (key, value) => {
    if (key === "context" || key === "$typeName") return undefined;
    return typeof value === "bigint" ? Number(value) : value;
  });
  const namespace = namespaceOf(protocol);
  return JSON.parse(text.replaceAll(namespace, "NAMESPACE").replaceAll(/\b[0-9a-v]{14}_/g, "HASH_"));
}

/** A gateway over an empty directory, and a client of every protocol. */
export interface MatrixFixture {
  readonly clients: Readonly<Record<string, Pick<ProtocolClient, "client">>>;
  close(): Promise<void>;
}

/**
 * Checks that every operation has the same outcome on every wire.
 *
 * @param name the gateway, for the titles
 * @param can whether the gateway can do what a scenario needs. Default: it can
 */
export function matrixSuite(
  name: string,
  open: () => Promise<MatrixFixture>,
  can: (scenario: Scenario) => boolean = () => true,
): void {
  describe(`every operation on every wire of ${name}`, () => {
    let fixture: MatrixFixture;
    beforeAll(async () => {
      fixture = await open();
      const client = clientOf("gRPC");
      for (const ns of protocols.map(namespaceOf)) {
        await client.createNamespace({ id: [ns], properties: { owner: "the matrix" } });
        await client.createNamespace({ id: [ns, "child"] });
        await client.createTable({ id: [ns, "t"], properties: { a: "1" } }, personStream(people(5)));
        await client.declareTable({ id: [ns, "d"] });
      }
    });
    afterAll(() => fixture?.close());

    const clientOf = (protocol: string) => fixture.clients[protocol]?.client as LanceClient;

    /** Returns the outcome of a call on each wire: its normalized answer, or its failure. */
    async function outcomes(run: (protocol: string) => Promise<unknown>): Promise<Record<string, unknown>> {
      const all: Record<string, unknown> = {};
      for (const protocol of protocols) {
        all[protocol] = await run(protocol).then(
          (answer) => ({ answer: normalized(protocol, answer) }),
          (error: unknown) => (error instanceof CallError ? error.failure : error),
        );
      }
      return all;
    }

    /** Returns the form that the failure of a row of the error table must have on each wire. */
    function failures(name: ErrorName): Record<string, unknown> {
      const { code, httpStatus, grpcCode } = errorEntry(name);
      const failure = (protocol: string) => (protocol === "REST" ? { code, httpStatus } : { code, grpcCode });
      return Object.fromEntries(protocols.map((protocol) => [protocol, failure(protocol)]));
    }

    for (const { operation, name: scenario, fails, run } of scenarios.filter(can)) {
      test(`${operation} ${scenario} ${fails === undefined ? "answers" : `is ${fails}`} alike`, async () => {
        const answers = await outcomes((protocol) => run(clientOf(protocol), namespaceOf(protocol)));
        if (fails !== undefined) return assert.deepEqual(answers, failures(fails));
        const [expected] = Object.values(answers);
        assert.deepEqual(answers, Object.fromEntries(protocols.map((protocol) => [protocol, expected])));
        assert.ok(Object.hasOwn(expected as object, "answer"));
      });
    }

    test("every operation that works has scenarios", () => {
      const covered = new Set(scenarios.map(({ operation }) => operation));
      assert.deepEqual([...covered].sort(), [...FIRST_CUT].sort());
    });

    for (const operation of ALL_OPERATIONS) {
      if (FIRST_CUT.has(operation)) continue;
      test(`${operation} is Unsupported alike`, async () => {
        const id = (protocol: string) => [namespaceOf(protocol), "t"];
        const answers = await outcomes((protocol) => callBare(clientOf(protocol), operation, id(protocol)));
        assert.deepEqual(answers, failures("Unsupported"));
      });
    }
  });
}
