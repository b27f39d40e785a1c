import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pino } from "pino";
import { expect, it, onTestFinished } from "vitest";
import { eventOf, SECRET, startReceiver } from "../../../test/fixtures/events.ts";
import { sourcesOf } from "../../../test/support/command-line.ts";
import { temporaryDirectory } from "../../../test/support/directory.ts";
import { readServeOptions } from "../../config/serve-options.ts";
import { createEventTallies } from "../../observability/metrics/event-tallies.ts";
import { openLiveWebhooks } from "./live-webhooks.ts";

/** Opens webhooks over directories, and returns what changes them. */
async function openChanging() {
  const { path, remove } = await temporaryDirectory();
  onTestFinished(remove);
  const secret = join(path, "secret");
  await writeFile(secret, SECRET);
  const wantedOf = (directory: string, ...urls: readonly string[]) => {
    const files = ["--webhook-secret-file", secret, "--webhook-dir", join(path, directory)];
    const flags = urls.length === 0 ? [] : [...urls.flatMap((url) => ["--webhook-url", url]), ...files];
    return { options: readServeOptions(sourcesOf(flags)) };
  };
  const log = pino({ level: "silent" });
  const webhooks = await openLiveWebhooks(wantedOf("a"), { log, tally: createEventTallies() });
  onTestFinished(() => webhooks.close());
  const change = async (directory: string, ...urls: readonly string[]) =>
    (await webhooks.prepare(wantedOf(directory, ...urls))).commit();
  const announce = async (object: string) => {
    const event = eventOf(object);
    await webhooks.announce([event]);
    return event.id;
  };
  return { path, webhooks, wantedOf, change, announce };
}

it("delivers each event to the receivers of its time, without losing one while they change", async () => {
  const [one, two] = [await startReceiver({ onTestFinished }), await startReceiver({ onTestFinished })];
  const { change, announce } = await openChanging();
  await announce("nowhere");
  await change("a", one.url);
  const ids = [await announce("t")];
  await change("a", one.url, two.url);
  ids.push(await announce("t"));
  const idsAt = ({ received }: typeof one) => received.map(({ event }) => event.id);
  await expect.poll(() => idsAt(one)).toEqual(ids);
  await change("b", one.url, two.url);
  ids.push(await announce("t"));
  await expect.poll(() => idsAt(one)).toEqual(ids);
  await expect.poll(() => idsAt(two)).toEqual(ids.slice(1));
  await change("b");
  await announce("nowhere");
  await change("a", one.url);
  ids.push(await announce("t"));
  await expect.poll(() => idsAt(one)).toEqual(ids);
  assert.equal(two.received.length, 2);
});

it("keeps the receivers when a change is wrong or taken back", async () => {
  const { url, received } = await startReceiver({ onTestFinished });
  const { path, webhooks, wantedOf, change, announce } = await openChanging();
  await change("a", url);
  const wrong = wantedOf("a", url, "http://127.0.0.1:1/other");
  const options = { ...wrong.options, webhookSecretFile: join(path, "missing") };
  await assert.rejects(webhooks.prepare({ options }), /--webhook-secret-file .*missing: it cannot be read/);
  await assert.rejects(webhooks.prepare(wantedOf("a", url, url)), /names .* twice/);
  for (const directory of ["a", "b"])
    await (await webhooks.prepare(wantedOf(directory, "http://127.0.0.1:1/other"))).abort();
  await announce("t");
  await expect.poll(() => received.length).toBe(1);
});
