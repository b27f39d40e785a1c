import assert from "node:assert/strict";
import { once } from "node:events";
import { MessageChannel } from "node:worker_threads";
import { test } from "vitest";
import { now } from "./instant.ts";
import { openLink } from "./link.ts";

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
