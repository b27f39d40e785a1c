import assert from "node:assert/strict";
import { Agent } from "node:http";
import { type ArrowBody, arrowBodies, mutate } from "./arrow-bodies.ts";
import { temporaryDirectory } from "./directory.ts";
import { sendHttp } from "./http.ts";
import { startProgram } from "./program.ts";
import { createRandom } from "./random.ts";

/** Number of requests that are on their way at once. */
const SENDERS = 6;

/** Maximum time of an answer, in milliseconds. */
const PATIENCE_MS = 30_000;

const ARROW = { "content-type": "application/vnd.apache.arrow.stream" };
const JSON_TYPE = { "content-type": "application/json" };

const READ = Buffer.from(JSON.stringify({ k: 100, vector: [] }));

const CREATE = (table: string) => `/v1/table/${table}/create?mode=overwrite`;

/** The targets of bodies; each sender has a table for each body. */
const TARGETS = [
  CREATE,
  (table: string) => `/v1/table/${table}/insert`,
  (table: string) =>
    `/v1/table/${table}/merge_insert?on=id&when_matched_update_all=true&when_not_matched_insert_all=true`,
] as const;

/**
 * Sends mutated Arrow bodies to a server in a process of its own, and reads the tables that accepted them.
 *
 * @returns the number of answers by status
 * @throws AssertionError for an answer of 5xx, for a late answer, and for a server that dies
 */
export async function attackWithArrowBodies(count: number, seed: number): Promise<Record<string, number>> {
  const directory = await temporaryDirectory();
  const program = startProgram("serve", "--root", directory.path, "--port", "0", "--log-level", "error");
  const agent = new Agent({ keepAlive: true, maxSockets: SENDERS });
  try {
    const port = await program.listening();
    const bodies = arrowBodies();
    const statuses: Record<string, number> = {};
    const failures: string[] = [];

    const send = async (path: string, headers: Record<string, string>, body: Uint8Array, what: string) => {
      const answered = sendHttp(port, { path, headers, body, agent });
      const late = AbortSignal.timeout(PATIENCE_MS);
      const { status, bytes } = await Promise.race([
        answered,
        new Promise<never>((_, reject) => {
          late.addEventListener("abort", () => reject(new Error(`${path}: no answer to ${what}`)));
        }),
      ]);
      statuses[status] = (statuses[status] ?? 0) + 1;
      if (status >= 500) failures.push(`${status} ${path} ${what}: ${bytes.toString().slice(0, 300)}`);
      return status;
    };
    const sender = async (number: number) => {
      // A sequence of its own, so that the order of answers does not change what it sends.
      const random = createRandom(seed * SENDERS + number);
      // Tables whose schema is that of their body.
      const fresh = new Set<ArrowBody>();
      for (let sent = number; sent < count; sent += SENDERS) {
        const body = random.pick(bodies);
        const table = `t${number}_${bodies.indexOf(body)}`;
        if (!fresh.has(body)) await send(CREATE(table), ARROW, body.bytes, body.name);
        fresh.add(body);
        const target = random.pick(TARGETS);
        const { name, bytes } = mutate(body, bodies, random);
        const status = await send(target(table), ARROW, bytes, name);
        if (status !== 200) continue;
        if (target === CREATE) fresh.delete(body);
        await send(`/v1/table/${table}/query`, JSON_TYPE, READ, `what was taken of ${name}`);
      }
    };
    await Promise.race([
      Promise.all(Array.from({ length: SENDERS }, (_, number) => sender(number))),
      program.ended.then(({ code, signal, stderr }) => {
        throw new Error(`the server ended with ${code ?? signal}: ${stderr.slice(-2000)}`);
      }),
    ]);
    if (failures.length > 0) {
      program.child.kill("SIGTERM");
      const { stderr } = await program.ended;
      assert.fail(
        `${failures.length} answers of 5xx: ${failures.slice(0, 20).join("\n")}\n${stderr.slice(0, 8_000)}`,
      );
    }
    return statuses;
  } finally {
    agent.destroy();
    program.child.kill("SIGKILL");
    await program.ended;
    await directory.remove();
  }
}
