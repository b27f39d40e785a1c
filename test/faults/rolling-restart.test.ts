import assert from "node:assert/strict";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { test } from "vitest";
import { startBalancer } from "../support/balancer.ts";
import { temporaryDirectory } from "../support/directory.ts";
import { type Program, startProgram } from "../support/program.ts";
import { PROTOCOLS } from "../support/protocols.ts";
import { repeats } from "../support/repeats.ts";

/** Number of clients over all protocols, and number of restarts of both gateways. */
const CLIENTS = repeats("RESTART_CLIENTS", 10);
const RESTARTS = repeats("RESTARTS", 1);
/** Number of workers of every second gateway. */
const WORKERS = process.env["RESTART_WORKERS"] ?? "2";
const DRAIN_DELAY = process.env["RESTART_DELAY"] ?? "1s";

test("a rolling restart behind a balancer fails no call of clients that never retry", async (t) => {
  const directory = await temporaryDirectory();
  t.onTestFinished(directory.remove);
  const balancer = await startBalancer();
  t.onTestFinished(balancer.close);
  const programs = new Set<Program>();
  t.onTestFinished(() => {
    for (const { child } of programs) child.kill("SIGKILL");
  });

  async function start(): Promise<{ program: Program; port: number }> {
    const root = join(directory.path, "root");
    const workers = programs.size % 2 === 0 ? WORKERS : "1";
    const options = ["--port", "0", "--drain-delay", DRAIN_DELAY, "--workers", workers];
    const program = startProgram("serve", "--root", root, ...options);
    programs.add(program);
    const port = await program.listening();
    await balancer.add(port);
    return { program, port };
  }
  const gateways = [await start(), await start()];

  const failures: string[] = [];
  const calls = new Map<string, number>();
  let over = false;
  async function callAgainAndAgain(protocol: string): Promise<void> {
    const { client, close } = PROTOCOLS[protocol]?.(balancer.port) ?? assert.fail(protocol);
    while (!over) {
      await client.listNamespaces({ id: [] }).catch((error) => failures.push(`${protocol}: ${error}`));
      calls.set(protocol, (calls.get(protocol) ?? 0) + 1);
      await sleep(Math.random() * CLIENTS);
    }
    close();
  }
  const protocols = Object.keys(PROTOCOLS);
  const clients = Array.from({ length: CLIENTS }, (_, index) =>
    callAgainAndAgain(protocols[index % protocols.length] as string),
  );

  for (let restart = 0; restart < 2 * RESTARTS; restart++) {
    const before = gateways.shift();
    if (before === undefined) break;
    const { program, port } = before;
    program.child.kill("SIGTERM");
    assert.equal((await program.ended).code, 0);
    balancer.remove(port);
    gateways.push(await start());
  }
  over = true;
  await Promise.all(clients);
  await t.annotate([...calls].map(([protocol, count]) => `${protocol}: ${count} calls`).join(", "));
  assert.deepEqual(failures, []);
});
