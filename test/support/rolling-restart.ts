import assert from "node:assert/strict";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { TestContext } from "vitest";
import { temporaryDirectory } from "./directory.ts";
import { startFleet } from "./fleet.ts";
import { PROTOCOLS } from "./protocols.ts";

/** A rolling restart. */
export interface RollingRestart {
  /** Number of clients, of all protocols in turn. */
  readonly clients: number;
  /** How often both gateways are restarted. */
  readonly restarts: number;
  readonly drainDelay: string;
  /** Number of workers of the first gateway; the second one has a single one. */
  readonly workers: string;
}

/**
 * Restarts two gateways of one root in turn, while clients call them through a balancer. No client repeats a call, and
 * each keeps its connection for as long as the gateway does. Asserts that no call fails.
 */
export async function restartUnderCalls(t: TestContext, options: RollingRestart): Promise<void> {
  const { clients, restarts, drainDelay, workers } = options;
  const directory = await temporaryDirectory();
  t.onTestFinished(directory.remove);
  const commandLine = ["serve", "--root", join(directory.path, "root"), "--drain-delay", drainDelay];
  const fleet = await startFleet([
    [...commandLine, "--workers", workers],
    [...commandLine, "--workers", "1"],
  ]);
  t.onTestFinished(fleet.close);

  const failures: string[] = [];
  const calls = new Map<string, number>();
  let over = false;
  async function callAgainAndAgain(protocol: string): Promise<void> {
    const { client, close } = PROTOCOLS[protocol]?.(fleet.port) ?? assert.fail(protocol);
    while (!over) {
      await client.listNamespaces({ id: [] }).catch((error) => failures.push(`${protocol}: ${error}`));
      calls.set(protocol, (calls.get(protocol) ?? 0) + 1);
      await sleep(Math.random() * clients);
    }
    close();
  }
  const protocols = Object.keys(PROTOCOLS);
  const running = Array.from({ length: clients }, (_, index) =>
    callAgainAndAgain(protocols[index % protocols.length] as string),
  );

  for (let restart = 0; restart < 2 * restarts; restart++) {
    const { code } = await fleet.replace(restart % 2);
    assert.equal(code, 0);
  }
  over = true;
  await Promise.all(running);
  await t.annotate([...calls].map(([protocol, count]) => `${protocol}: ${count} calls`).join(", "));
  assert.deepEqual(failures, []);
  assert.deepEqual([...calls.keys()].sort(), protocols.sort());
}
