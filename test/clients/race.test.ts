import assert from "node:assert/strict";
import {
  Field,
  Int64,
  makeData,
  RecordBatch,
  Schema,
  Struct,
  Table,
  tableFromIPC,
  tableToIPC,
  Utf8,
  vectorFromArray,
} from "apache-arrow";
import { afterAll, beforeAll, describe, it } from "vitest";
import { assertAgreement, cellsIn, raceAtRandom, raceForEach } from "../faults/race/race.ts";
import { createGatewayRacer, type Racer } from "../faults/race/racer.ts";
import type { ProtocolClient } from "../support/client.ts";
import { createGrpcClient } from "../support/grpc-client.ts";
import { type Program, startProgram } from "../support/program.ts";
import { createRandom } from "../support/random.ts";
import { seedOf } from "../support/seed.ts";
import { type GatewayProcess, startGateway } from "./support/gateway.ts";
import { startPylanceRacer } from "./support/pylance-racer.ts";

const NAMES = Number(process.env["RACE_NAMES"] ?? 40);

const SEED = seedOf("RACE_SEED");

const ROUNDS = 10;

/** Makes a request about a table of the race, and returns its answer. */
async function post(uri: string, action: string, body: Uint8Array | string): Promise<Response> {
  const type = typeof body === "string" ? "application/json" : "application/vnd.apache.arrow.stream";
  const response = await fetch(`${uri}/v1/table/race$${action}`, {
    method: "POST",
    headers: { "content-type": type },
    body: typeof body === "string" ? body : Buffer.from(body),
  });
  assert.equal(response.status, 200, await response.clone().text());
  return response;
}

describe("three gateways and pylance's DirectoryNamespace on one root", () => {
  let first: GatewayProcess;
  let pylance: ReturnType<typeof startPylanceRacer>;
  const others: Program[] = [];
  const clients: ProtocolClient[] = [];
  const uris: string[] = [];
  const racers: Racer[] = [];
  beforeAll(async () => {
    first = await startGateway();
    others.push(
      ...Array.from({ length: 2 }, () => startProgram("serve", "--root", first.root, "--port", "0")),
    );
    const ports = await Promise.all(others.map((program) => program.listening()));
    for (const port of [Number(new URL(first.uri).port), ...ports]) {
      uris.push(`http://127.0.0.1:${port}`);
      const client = createGrpcClient(port);
      clients.push(client);
      racers.push(createGatewayRacer(`gateway ${clients.length}`, client.client));
    }
    await clients[0]?.client.createNamespace({ id: ["race"] });
    pylance = startPylanceRacer(first.base);
    racers.push(pylance.racer);
  });
  afterAll(async () => {
    for (const { close } of clients) close();
    for (const { child } of others) child.kill("SIGKILL");
    await pylance.end();
    await first.close();
  });

  it(`gives every name one winner each time (${NAMES} names)`, async () => {
    assert.deepEqual(await raceForEach(racers, cellsIn([["race"]], NAMES)), []);
  });

  it(`makes calls whose histories have an order (${NAMES} names, seed ${SEED})`, async () => {
    const cells = cellsIn([["race"]], NAMES / 2);
    await raceAtRandom(racers, cells, 6, createRandom(SEED));
    await assertAgreement(racers, cells);
  });

  it(`merges the same new keys of a primary key once each (${ROUNDS} rounds)`, async () => {
    const metadata = new Map([["lance-schema:unenforced-primary-key:position", "0"]]);
    const schema = new Schema([new Field("id", new Int64(), false, metadata)]);
    const streamOf = (keys: readonly number[]) => {
      const data = makeData({ type: new Int64(), data: BigInt64Array.from(keys, BigInt) });
      const struct = makeData({ type: new Struct(schema.fields), length: keys.length, children: [data] });
      return tableToIPC(new Table(schema, new RecordBatch(schema, struct)), "stream");
    };
    await post(uris[0] as string, "keyed/create", streamOf([0]));
    const merge = "keyed/merge_insert?on=id&when_matched_update_all=true&when_not_matched_insert_all=true";
    for (let round = 1; round <= ROUNDS; round++) {
      const keys = [round, round + 1, round + 2];
      await Promise.all([
        ...uris.map((uri) => post(uri, merge, streamOf(keys))),
        pylance.merge(["race", "keyed"], keys),
      ]);
    }
    const count = await post(uris[0] as string, "keyed/count_rows", "{}");
    assert.equal(Number(await count.text()), ROUNDS + 3);
  });

  it(`double no key by a gateway that pylance has inserted, without a primary key (${ROUNDS} rounds)`, async () => {
    const streamOf = (keys: readonly number[], by: string) =>
      tableToIPC(
        new Table({
          id: vectorFromArray(keys.map(BigInt), new Int64()),
          by: vectorFromArray(Array(keys.length).fill(by), new Utf8()),
        }),
        "stream",
      );
    await post(uris[0] as string, "plain/create", streamOf([0], "first"));
    for (let round = 1; round <= ROUNDS; round++) {
      const keys = [0, 1, 2].map((i) => 3 * round + i);
      await Promise.all([
        ...uris.map((uri, i) =>
          post(
            uri,
            "plain/merge_insert?on=id&when_not_matched_insert_all=true",
            streamOf(keys, `gateway ${i}`),
          ),
        ),
        pylance.merge(["race", "plain"], keys, false),
      ]);
    }
    const query = { vector: {}, k: 10_000, columns: { column_names: ["id", "by", "_rowaddr"] } };
    const answer = await post(uris[0] as string, "plain/query", JSON.stringify(query));
    const writers = new Map<bigint, string[]>();
    const rows = tableFromIPC(await answer.arrayBuffer()).toArray();
    for (const { id, by } of rows.toSorted((a, b) => (a._rowaddr < b._rowaddr ? -1 : 1)))
      writers.set(id, [...(writers.get(id) ?? []), by]);
    assert.equal(writers.size, 3 * ROUNDS + 1);
    // Pylance commits on top of rows that it has not seen, which no other writer can prevent.
    for (const [id, [, ...later]] of writers)
      assert.deepEqual(later, later.length > 0 ? ["pylance"] : [], `${id}`);
  });
});
