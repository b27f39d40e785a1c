import assert from "node:assert/strict";
import { once } from "node:events";
import { MessageChannel } from "node:worker_threads";
import { expect, test } from "vitest";
import { inFastTime } from "../../../../../test/support/fast-time.ts";
import { openLink } from "./forwarder.ts";
import { now } from "./messages.ts";

test("a worker that has ended is not waited for, whenever it is asked", async () => {
  const { port1, port2 } = new MessageChannel();
  let isLost = false;
  const link = openLink(
    port1,
    () => {},
    () => {
      isLost = true;
    },
  );
  const decided = { observations: [], changes: [], recorded: [], at: now() };
  const asked = link.commit(decided);
  port2.close();
  assert.equal(await asked, "lost");
  if (!isLost) await once(port1, "close");
  assert.equal(await link.commit(decided), "closed");
  assert.equal(await link.share(), undefined);
  await link.catchUp();
});

test("a link that is closed gets the answers to what it has asked, and asks nothing more", async () => {
  const { port1, port2 } = new MessageChannel();
  const nothing = () => {};
  const link = openLink(port1, nothing, nothing);
  const decided = { observations: [], changes: [], recorded: [], at: now() };
  const asked = link.commit(decided);
  link.close();
  assert.equal(await link.commit(decided), "closed");
  const [{ id }] = await once(port2, "message");
  port2.postMessage({ type: "outcome", id, outcome: "committed" });
  assert.equal(await asked, "committed");
  await once(port2, "close");
  await expect.poll(() => port1.listenerCount("message")).toBe(0);
});

test("a worker that does not answer for its storage is not waited for when the newest version is asked for", async (t) => {
  const { port1, port2 } = new MessageChannel();
  t.onTestFinished(() => port2.close());
  const nothing = () => {};
  const link = openLink(port1, nothing, nothing);
  assert.equal(await inFastTime(() => link.share()), undefined);
});
