import assert from "node:assert/strict";
import { afterAll, beforeAll, describe, test } from "vitest";
import { type Gateways, startGateways } from "../faults/race/gateways.ts";
import { REFUSALS } from "../faults/race/racer.ts";
import { people, personStream } from "../support/arrow.ts";
import { CallError, type LanceClient, type ProtocolClient } from "../support/client.ts";
import { createRandom } from "../support/random.ts";
import { repeats } from "../support/repeats.ts";
import { seedOf } from "../support/seed.ts";

const SEED = seedOf("RACE_SEED");

/** Number of calls of each client on each name. */
const CALLS = repeats("RACE_CALLS", 25);

const NAMES = Array.from({ length: 10 }, (_, index) => `t${index}`);

const ROWS = 3;

/** The calls by their kinds, which are drawn with the same likelihood. */
const CALLS_OF_KIND: readonly ((client: LanceClient, id: string[]) => Promise<unknown>)[] = [
  (client, id) => client.createTable({ id }, personStream(people(ROWS))),
  (client, id) => client.createTable({ id }, personStream(people(ROWS))),
  (client, id) => client.declareTable({ id }),
  (client, id) => client.dropTable({ id }),
  (client, id) => client.dropTable({ id }),
  (client, id) => client.deregisterTable({ id }),
  async (client, id) => assert.equal((await client.countTableRows({ id })).count, BigInt(ROWS)),
  async (client, id) => assert.equal((await client.countTableRows({ id })).count, BigInt(ROWS)),
];

describe("creates, drops and counts of the same names through three gateways, one of them with workers", () => {
  let gateways: Gateways;
  beforeAll(async () => {
    gateways = await startGateways([1, 1, 2]);
    await gateways.clients[0]?.client.createNamespace({ id: ["ns"] });
  });
  afterAll(() => gateways.close());

  for (const [where, parent] of [
    ["the root", []],
    ["a namespace", ["ns"]],
  ] as const) {
    test(`answer with whole tables or clear refusals in ${where} (${CALLS} calls each, seed ${SEED})`, async () => {
      const random = createRandom(SEED);
      const wrong: string[] = [];
      const attempt = async (call: Promise<unknown>, what: string) => {
        await call.catch((error: unknown) => {
          const code = error instanceof CallError ? error.failure.code : undefined;
          const allowed: readonly (number | undefined)[] = Object.values(REFUSALS);
          if (code === undefined || !allowed.includes(code)) wrong.push(`${what}: ${error}`);
        });
      };
      const runs = NAMES.flatMap((name) =>
        gateways.clients.map(async ({ client }, index) => {
          for (let i = 0; i < CALLS; i++)
            await attempt(random.pick(CALLS_OF_KIND)(client, [...parent, name]), `client ${index}, ${name}`);
        }),
      );
      await Promise.all(runs);
      const [first, second] = gateways.clients as [ProtocolClient, ProtocolClient];
      for (const name of NAMES) {
        const id = [...parent, name];
        await attempt(first.client.dropTable({ id }), `drop of ${name}`);
        await first.client.createTable({ id }, personStream(people(ROWS)));
        assert.equal((await second.client.countTableRows({ id })).count, BigInt(ROWS));
      }
      assert.deepEqual(wrong, []);
    });
  }
});
