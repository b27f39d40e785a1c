import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it, type TestContext } from "vitest";
import { SECRET, startReceiver } from "../fixtures/events.ts";
import { temporaryDirectory } from "../support/directory.ts";
import { startProgram } from "../support/program.ts";

/** Returns a function that starts the program over a directory, as often as a test wants. */
async function programs(context: TestContext, url: string) {
  const { path: folder, remove } = await temporaryDirectory();
  context.onTestFinished(remove);
  await writeFile(join(folder, "secret"), SECRET);
  return (...args: readonly string[]) => {
    const program = startProgram(
      ...["serve", "--port", "0", "--root", join(folder, "root"), "--webhook-url", url],
      ...["--webhook-secret-file", join(folder, "secret"), "--webhook-dir", join(folder, "events"), ...args],
    );
    context.onTestFinished(async () => {
      program.child.kill();
      await program.ended;
    });
    return program;
  };
}

/** Creates a namespace by a connection of its own, so that any worker may serve it. */
async function change(port: number, name: string, what: "create" | "drop"): Promise<void> {
  const headers = { "content-type": "application/json", connection: "close" };
  const init = { method: "POST", headers, body: "{}" };
  const answer = await fetch(`http://127.0.0.1:${port}/v1/namespace/${name}/${what}`, init);
  assert.equal(answer.status, 200, await answer.text());
}

describe("lance-gateway serve --webhook-url", () => {
  it("delivers the changes of all workers in the order of an object, also after the process was killed", async (context) => {
    let status = 503;
    const { url, received } = await startReceiver(
      context,
      (response) => void response.writeHead(status).end(),
    );
    const start = await programs(context, url);
    const first = start("--workers", "2");
    const port = await first.listening();
    for (let round = 0; round < 8; round++) {
      await change(port, "a", "create");
      await change(port, "a", "drop");
    }
    await change(port, "b", "create");
    await expect.poll(() => received.length).toBeGreaterThan(0);
    first.child.kill("SIGKILL");
    await first.ended;
    const before = received.length;
    status = 204;
    const second = start();
    const secondPort = await second.listening();
    await expect.poll(() => received.length).toBe(before + 17);
    const ofA = received.slice(before).filter(({ event }) => event.subject === "a");
    assert.deepEqual(
      ofA.map(({ event }) => event.data.operation),
      Array.from({ length: 8 }, () => ["CreateNamespace", "DropNamespace"]).flat(),
    );
    // A receiver has an event before the gateway has its response.
    const metrics = async () => (await fetch(`http://127.0.0.1:${secondPort}/metrics`)).text();
    await expect
      .poll(metrics)
      .toMatch(/lance_gateway_webhook_attempts_total\{webhook="http:[^"]*",outcome="delivered"\} 17/);
  });

  it("delivers what is ready before it ends", async (context) => {
    const { url, received } = await startReceiver(context);
    const start = await programs(context, url);
    const program = start();
    const port = await program.listening();
    await change(port, "a", "create");
    program.child.kill("SIGTERM");
    assert.equal((await program.ended).code, 0);
    assert.equal(received.length, 1);
  });
});
