import assert from "node:assert/strict";
import { readdir, rm } from "node:fs/promises";
import { basename, join } from "node:path";
import { test } from "vitest";
import { createWorld, rows } from "../../../../test/fixtures/dir/departures.ts";
import type { DirContext } from "../operations/context.ts";
import type { Intent } from "./intent.ts";
import { createJournal, type Journal, type PendingIntent } from "./journal.ts";
import { resolvePending } from "./resolve.ts";

/** Waits of an owner during which other processes may finish its drop and use the name again. */
const PAUSES: Readonly<
  Record<string, (context: DirContext, pause: () => Promise<void>) => Partial<DirContext>>
> = {
  "before it looks for work": ({ work }, pause) => ({
    work: {
      ...work,
      async isAtWork(location) {
        await pause();
        return work.isAtWork(location);
      },
    },
  }),
  "before it removes the directory": ({ layout }, pause) => ({
    layout: {
      ...layout,
      async removePutAside(...args) {
        await pause();
        return layout.removePutAside(...args);
      },
    },
  }),
};

type World = Awaited<ReturnType<typeof createWorld>>;

/** Makes tables whose locations the next one gets again. The second name begins like a location that is drawn. */
const PLACES: Readonly<Record<string, (client: World["client"], name: string) => Promise<unknown>>> = {
  "t.lance": (client, name) => client.upload("createTable", name, {}, rows),
  "recommendation_v1.lance": (client, name) => client.upload("createTable", name, {}, rows),
  "chosen/t": async (client, name) => {
    await client.call("declareTable", name, { location: "chosen/t" });
    await client.upload("insertIntoTable", name, {}, rows);
  },
};

for (const [moment, hooked] of Object.entries(PAUSES))
  for (const [next, location] of [
    ["is in use", "t.lance"],
    ["is in use", "recommendation_v1.lance"],
    ["was put aside", "t.lance"],
    ["is in use", "chosen/t"],
  ] as const)
    test(`a drop that pauses ${moment} leaves the next table at ${location}, which ${next}`, async (t) => {
      const { base, client, context, drop } = await createWorld(t);
      const name = basename(location, ".lance");
      const make = () => PLACES[location]?.(client, name);
      await make();
      const { layout, store, clock } = context;
      const times = { renewMs: 60_000, leaseMs: 60_000, lifeMs: 60_000, retainMs: 60_000 };
      const { isLapsed, journal } = lapsing(createJournal(layout.baseKey, store, clock, times));
      const pause = async () => {
        if (isLapsed()) return;
        isLapsed(true);
        // Another process takes over.
        const [pending] = (await journal.open()) as [PendingIntent];
        await resolvePending(context, pending);
        assert.equal(await context.layout.exists(location), false);
        await make();
        if (next === "was put aside") await client.call("deregisterTable", name);
      };
      await drop(name, { ...hooked(context, pause), journal });
      assert.ok(isLapsed());
      assert.ok((await readdir(join(base, location))).includes("_versions"));
      if (next === "is in use") assert.equal((await client.call("countTableRows", name)).count, 2n);
    });

for (const [moment, hooked] of Object.entries(PAUSES))
  for (const location of ["t.lance", "chosen/t"])
    test(`a drop of a table that has lost its directory leaves the next one at ${location}, which is made ${moment}`, async (t) => {
      const { base, client, context, drop } = await createWorld(t);
      const make = async () => PLACES[location]?.(client, "t");
      await make();
      await rm(join(base, location), { recursive: true });
      await drop(
        "t",
        hooked(context, async () => void (await make())),
      );
      assert.equal((await client.call("countTableRows", "t")).count, 2n);
    });

/** Returns a journal whose owner's leases can lapse, and which shows its open notes to others. */
function lapsing(journal: Journal) {
  let lapsed = false;
  const begun: PendingIntent[] = [];
  return {
    isLapsed: (now = lapsed) => {
      lapsed = now;
      return lapsed;
    },
    journal: {
      ...journal,
      async begin(intent: Intent) {
        const own = await journal.begin(intent);
        begun.push({ ...own, isOver: async () => true });
        return { ...own, isHeld: () => !lapsed && own.isHeld() };
      },
      open: async () => begun,
    },
  };
}
