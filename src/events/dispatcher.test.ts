import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { pino } from "pino";
import { describe, expect, it, type TestContext } from "vitest";
import { eventOf, SECRET, startReceiver } from "../../test/fixtures/events.ts";
import { temporaryDirectory } from "../../test/support/directory.ts";
import { createDispatcher, type DispatcherOptions, openDeadLetters } from "./dispatcher.ts";
import { createAddressGuard, createGuardedAgent } from "./guarded-agent.ts";
import { openJournal } from "./journal.ts";
import { createWebhook, parseSecrets, type WebhookSetting } from "./send.ts";

/** Opens dispatchers over a directory, one after another as runs of a program. */
async function directoryFor({ onTestFinished }: TestContext) {
  const { path, remove } = await temporaryDirectory();
  const closings: (() => Promise<void>)[] = [remove];
  onTestFinished(async () => {
    for (const close of closings.reverse()) await close();
  });
  const counts: Record<string, number> = {};
  const count = (name: string, change = 1) => {
    counts[name] = (counts[name] ?? 0) + change;
  };
  async function open(settings: readonly WebhookSetting[], options: Partial<DispatcherOptions> = {}) {
    const log = pino({ level: "silent" });
    const dispatcher = createDispatcher({
      webhooks: settings.map((setting) => createWebhook(setting, () => parseSecrets(SECRET))),
      journal: await openJournal(join(path, "waiting.jsonl"), log),
      deadLetters: options.deadLetters ?? (await openDeadLetters(join(path, "dead-letters.jsonl"), log)),
      agent: createGuardedAgent({ guard: createAddressGuard(), connections: 8, timeoutMs: 1_000 }),
      retry: { firstPauseMs: 10, maxPauseMs: 20, totalMs: 60_000 },
      ...{ timeoutMs: 60_000, maxWaitingBytes: 1024 ** 2, log },
      tally: {
        attempted: (_, outcome) => count(outcome),
        buried: () => count("buried"),
        lost: () => count("lost"),
        waiting: (_, change) => count("waiting", change),
      },
      ...options,
    });
    closings.push(() => dispatcher.close());
    return dispatcher;
  }
  const deadLetters = async () =>
    (await readFile(join(path, "dead-letters.jsonl"), "utf8"))
      .split("\n")
      .flatMap((line) => (line === "" ? [] : [JSON.parse(line)]));
  return { open, counts, deadLetters };
}

const GONE = "http://127.0.0.1:1/hook";

describe("the delivery of events", () => {
  it("reaches each receiver with what it wants, in the order of an object", async (context) => {
    const [all, some] = [await startReceiver(context), await startReceiver(context)];
    const { open, counts } = await directoryFor(context);
    const { announce } = await open([
      { url: all.url },
      { url: some.url, types: ["table.dropped"], databases: ["sales"] },
    ]);
    const dropped = eventOf("t", "table.dropped");
    const elsewhere = { ...dropped, id: "elsewhere", data: { ...dropped.data, database: "other" } };
    const wanted = { ...dropped, id: "wanted", data: { ...dropped.data, database: "sales" } };
    const events = [eventOf("t"), dropped, elsewhere, wanted];
    for (const event of events) await announce([event]);
    await expect.poll(() => all.received.length + some.received.length).toBe(5);
    assert.deepEqual(
      some.received.map(({ event }) => event.id),
      ["wanted"],
    );
    const ofObject = all.received.filter(({ event }) => event.data.database === undefined);
    assert.deepEqual(
      ofObject.map(({ event }) => event.id),
      events.slice(0, 2).map(({ id }) => id),
    );
    await expect.poll(() => counts).toEqual({ delivered: 5, waiting: 0 });
  });

  it("goes on after a restart with what was not delivered, in order and with the same ids", async (context) => {
    const { open, counts } = await directoryFor(context);
    const events = [eventOf("t"), eventOf("t"), eventOf("u")];
    let answers = 503;
    const receiver = await startReceiver(context, (response) => void response.writeHead(answers).end());
    const first = await open([{ url: receiver.url }]);
    await first.announce(events);
    await expect.poll(() => counts["failed"] ?? 0).toBeGreaterThanOrEqual(2);
    await first.close();
    const before = receiver.received.length;
    answers = 204;
    await open([{ url: receiver.url }]);
    await expect.poll(() => counts["delivered"]).toBe(3);
    const after = receiver.received.slice(before).map(({ event }) => event.id);
    assert.deepEqual([...after].sort(), events.map(({ id }) => id).sort());
    assert.ok(after.indexOf(events[0]?.id ?? "") < after.indexOf(events[1]?.id ?? ""));
    await open([{ url: receiver.url }]);
    assert.equal(receiver.received.length, before + 3);
  });

  it("ends in the file of dead letters after its time, without the query of the address", async (context) => {
    const { open, counts, deadLetters } = await directoryFor(context);
    const retry = { firstPauseMs: 1, maxPauseMs: 1, totalMs: 0 };
    const { announce } = await open([{ url: `${GONE}?token=secret-1` }], { retry });
    const event = eventOf("t");
    await announce([event]);
    await expect.poll(() => counts["buried"]).toBe(1);
    const [{ time, reason, ...letter }, ...rest] = await deadLetters();
    assert.ok(Date.parse(time) > 0);
    assert.match(reason, /ECONNREFUSED/);
    assert.deepEqual(letter, { webhook: GONE, attempts: 1, event: JSON.parse(JSON.stringify(event)) });
    assert.deepEqual(rest, []);
  });

  it("takes no more memory than it may: further events are dead letters at once", async (context) => {
    const { open, counts, deadLetters } = await directoryFor(context);
    const size = JSON.stringify(eventOf("a")).length;
    const { announce } = await open([{ url: GONE }], { maxWaitingBytes: size * 3 });
    await announce(["a", "b", "c", "d", "e"].map((name) => eventOf(name)));
    assert.equal(counts["waiting"], 3);
    assert.deepEqual(
      (await deadLetters()).map(({ reason, event }) => [reason, event.subject]),
      ["d", "e"].map((name) => ["too many events wait", name]),
    );
  });

  it("goes on with a receiver that stays, and gives up what waits for one that is left out", async (context) => {
    const { open, counts, deadLetters } = await directoryFor(context);
    let answers = 503;
    const stays = await startReceiver(context, (response) => void response.writeHead(answers).end());
    const comes = await startReceiver(context);
    const { announce, replace } = await open([{ url: stays.url }, { url: GONE }]);
    const [first, second, third] = [eventOf("t"), eventOf("t"), eventOf("t", "table.dropped")];
    await announce([first, second]);
    await expect.poll(() => counts["failed"] ?? 0).toBeGreaterThanOrEqual(2);
    const receivers = [{ url: stays.url, types: ["table.created" as const] }, { url: comes.url }];
    replace(receivers.map((setting) => createWebhook(setting, () => parseSecrets(SECRET))));
    await expect.poll(() => counts["buried"]).toBe(2);
    assert.deepEqual(
      (await deadLetters()).map(({ webhook, reason, event }) => [webhook, reason, event.id]),
      [first, second].map(({ id }) => [GONE, "the webhook is not configured any more", id]),
    );
    answers = 204;
    await announce([third]);
    await expect.poll(() => [counts["delivered"], counts["waiting"]]).toEqual([3, 0]);
    const ids = stays.received.map(({ event }) => event.id);
    assert.deepEqual([...new Set(ids)], [first.id, second.id]);
    assert.deepEqual(
      comes.received.map(({ event }) => event.id),
      [third.id],
    );
  });

  it("gives up what waits for a receiver that is no longer configured", async (context) => {
    const { open, counts, deadLetters } = await directoryFor(context);
    const first = await open([{ url: GONE }]);
    await first.announce([eventOf("t")]);
    await first.close();
    const { url, received } = await startReceiver(context);
    await open([{ url }]);
    await expect.poll(() => counts["buried"]).toBe(1);
    const [{ reason }] = await deadLetters();
    assert.equal(reason, "the webhook is not configured any more");
    assert.deepEqual(received, []);
  });

  it("loses nothing while dead letters cannot be written: the next run has the event", async (context) => {
    const { open, counts } = await directoryFor(context);
    const deadLetters = { bury: () => Promise.reject(new Error("no space")), close: async () => {} };
    const retry = { firstPauseMs: 1, maxPauseMs: 1, totalMs: 0 };
    const first = await open([{ url: GONE }], { deadLetters, retry });
    await first.announce([eventOf("t")]);
    await expect.poll(() => counts["lost"]).toBe(1);
    await first.close();
    await open([{ url: GONE }], { retry });
    await expect.poll(() => counts["buried"]).toBe(1);
  });

  it("keeps a bounded number of events for the next run while dead letters cannot be written", async (context) => {
    const { open, counts } = await directoryFor(context);
    const deadLetters = { bury: () => Promise.reject(new Error("no space")), close: async () => {} };
    const options = { maxWaitingBytes: JSON.stringify(eventOf("a")).length * 3 };
    const first = await open([{ url: GONE }], { ...options, deadLetters });
    await first.announce(Array.from("abcdefghijkl", (name) => eventOf(name)));
    assert.deepEqual([counts["waiting"], counts["lost"]], [3, 9]);
    await first.close();
    // Three that waited, and three of those that were given up.
    await open([], options);
    await expect.poll(() => counts["buried"]).toBe(6);
  });

  it("ends although a receiver never answers", async (context) => {
    const { url, received } = await startReceiver(context, () => {});
    const { open } = await directoryFor(context);
    const { announce, close } = await open([{ url }], { lastCallMs: 50 });
    await announce([eventOf("t")]);
    await expect.poll(() => received.length).toBe(1);
    await close();
  });
});
