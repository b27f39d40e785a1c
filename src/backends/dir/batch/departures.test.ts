import assert from "node:assert/strict";
import { mkdir, readdir, rename } from "node:fs/promises";
import { join } from "node:path";
import { test } from "vitest";
import { leaveIntent, leaveVerdict } from "../../../../test/fixtures/dir/batch.ts";
import { createWorld } from "../../../../test/fixtures/dir/departures.ts";
import { failsWith } from "../../../../test/fixtures/dir/directory-backend.ts";
import { RegisterTableMode } from "../../../gen/lance/namespace/v1/table_pb.ts";
import { LanceError } from "../../../namespace/errors.ts";
import { createLayout } from "../catalog/base/base-layout.ts";
import type { Row } from "../catalog/state/row.ts";
import { UnsyncedError } from "../format/local/local-errors.ts";
import type { ObjectStore } from "../format/storage.ts";
import type { DirContext } from "../operations/context.ts";
import { resolveAbandoned } from "./resolve.ts";

/** Returns a journal that calls back right after it has written a note, the first time. */
function afterNote({ journal }: DirContext, happens: () => Promise<unknown>): Pick<DirContext, "journal"> {
  let pending: (() => Promise<unknown>) | undefined = happens;
  return {
    journal: {
      ...journal,
      async begin(intent) {
        const own = await journal.begin(intent);
        const work = pending;
        pending = undefined;
        await work?.();
        return own;
      },
    },
  };
}

for (const id of ["t", "n$t"]) {
  test(`a drop of ${id} that is refused keeps what a deregistration put aside meanwhile`, async (t) => {
    const { base, client, context, drop, takeRow, directoryOf, notes } = await createWorld(t, id);
    const directory = await directoryOf(id);
    const refused = drop(
      id,
      afterNote(context, () => takeRow(id)),
    );
    await assert.rejects(refused, failsWith("TableNotFound"));
    assert.ok((await readdir(directory)).includes("_versions"));
    assert.deepEqual(await notes(), []);
    await client.call("registerTable", id, { location: directory.slice(base.length + 1) });
    assert.equal((await client.call("countTableRows", id)).count, 2n);
  });

  test(`a deregistration of ${id} is refused while a drop of it is in flight`, async (t) => {
    const { client, context, drop } = await createWorld(t, id);
    const deregister = () =>
      assert.rejects(client.call("deregisterTable", id), failsWith("ConcurrentModification"));
    await drop(id, afterNote(context, deregister));
    assert.deepEqual((await client.call("listTables", id === "t" ? "" : "n")).tables, []);
  });

  test(`a drop of ${id} whose table got another directory meanwhile removes that one alone`, async (t) => {
    const { base, context, drop, directoryOf } = await createWorld(t, id, `${id}2`);
    const [first, second] = [await directoryOf(id), await directoryOf(`${id}2`)];
    const swap = () =>
      context.catalog.mutate((draft) => {
        const row = draft.get(`${id}2`) as Row;
        draft.delete(row.objectId);
        draft.put({ ...row, objectId: id });
      });
    assert.equal((await drop(id, afterNote(context, swap))).location, second);
    const left = await readdir(base);
    assert.deepEqual(
      [first, second].map((path) => left.includes(path.slice(base.length + 1))),
      [true, false],
    );
  });

  test(`a drop of ${id} whose commit is refused by the storage leaves everything as it was`, async (t) => {
    const { client, context, drop, notes } = await createWorld(t, id);
    const failing = (tries: number): Pick<DirContext, "catalog"> => {
      let left = tries;
      return {
        catalog: {
          ...context.catalog,
          mutate: (mutation) =>
            left-- > 0
              ? Promise.reject(new LanceError("ServiceUnavailable", "the storage fails"))
              : context.catalog.mutate(mutation),
        },
      };
    };
    await assert.rejects(drop(id, failing(1)), failsWith("ServiceUnavailable"));
    assert.deepEqual(await notes(), []);
    assert.equal((await client.call("countTableRows", id)).count, 2n);
    // If not even that can be found out, the note stays, and the next change resolves it.
    await assert.rejects(drop(id, failing(2)), failsWith("ServiceUnavailable"));
    assert.equal((await notes()).length, 1);
    await client.call("declareTable", "other");
    await client.call("deregisterTable", "other");
    assert.deepEqual(await notes(), []);
    assert.equal((await client.call("countTableRows", id)).count, 2n);
    assert.equal((await client.call("listTables", id === "t" ? "" : "n")).tables.length, 1);
  });
}

test("a location is not registered again while a drop removes what is there", async (t) => {
  const { client, context, drop, base } = await createWorld(t, "t");
  const layout: DirContext["layout"] = {
    ...context.layout,
    async removePutAside(location, ...rest) {
      const again = client.call("registerTable", "again", { location });
      await assert.rejects(again, failsWith("ConcurrentModification"));
      return context.layout.removePutAside(location, ...rest);
    },
  };
  await drop("t", { layout });
  assert.ok(!(await readdir(base)).includes("t.lance"));
});

test("a table that is registered in place of another one hides the directory of that one", async (t) => {
  const { client, directoryOf, base } = await createWorld(t, "t", "n$u");
  const location = (await directoryOf("n$u")).slice(base.length + 1);
  await client.call("deregisterTable", "n$u");
  await client.call("registerTable", "t", { location, mode: RegisterTableMode.OVERWRITE });
  await client.call("dropTable", "t");
  assert.deepEqual((await client.call("listTables", "")).tables, []);
  assert.ok((await readdir(join(base, "t.lance"))).includes("_versions"), "its data is put aside");
});

test("a drop whose commit lands while its answer is lost removes the table", async (t) => {
  const { base, client, context, drop, notes } = await createWorld(t, "t");
  let lost = false;
  const catalog: DirContext["catalog"] = {
    ...context.catalog,
    async mutate(mutation) {
      const answer = await context.catalog.mutate(mutation);
      if (lost) return answer;
      lost = true;
      throw new LanceError("ServiceUnavailable", "the answer is lost");
    },
  };
  await drop("t", { catalog });
  assert.deepEqual((await client.call("listTables", "")).tables, []);
  assert.ok(!(await readdir(base)).includes("t.lance"));
  assert.deepEqual(await notes(), []);
});

test("a drop whose commit may not survive a loss of power removes nothing", async (t) => {
  const { base, context, drop, notes } = await createWorld(t, "t");
  const catalog: DirContext["catalog"] = {
    ...context.catalog,
    async mutate(mutation) {
      await context.catalog.mutate(mutation);
      throw new UnsyncedError(new Error("the disk fails"));
    },
  };
  await assert.rejects(drop("t", { catalog }), failsWith("OutcomeUnknown"));
  assert.ok((await readdir(join(base, "t.lance"))).includes("_versions"));
  assert.equal((await notes()).length, 1);
});

test("a drop of a table whose directory another implementation has given to a second one keeps the directory", async (t) => {
  const { client, context, drop } = await createWorld(t, "t");
  await context.catalog.mutate((draft) => draft.put({ ...(draft.get("t") as Row), objectId: "second" }));
  await drop("t", {});
  assert.deepEqual((await client.call("listTables", "")).tables, ["second"]);
  assert.equal((await client.call("countTableRows", "second")).count, 2n);
});

test("a cascade removes exactly the tables whose rows its commit takes", async (t) => {
  const { base, client, context, dropNamespace, takeRow, directoryOf } = await createWorld(t, "n$a", "n$b");
  const [a, b] = [await directoryOf("n$a"), await directoryOf("n$b")];
  const meanwhile = async () => {
    await takeRow("n$a");
    await client.call("declareTable", "n$c");
  };
  await dropNamespace(afterNote(context, meanwhile));
  const left = await readdir(base);
  assert.ok(left.includes(a.slice(base.length + 1)), "what was put aside stays");
  assert.ok(!left.includes(b.slice(base.length + 1)));
  assert.deepEqual(
    left.filter((name) => name.endsWith("n$c")),
    [],
  );
});

test("a drop leaves the table that another program has put inside of the directory", async (t) => {
  const { base, client, context } = await createWorld(t, "t", "u");
  await rename(join(base, "u.lance"), join(base, "t.lance/inner"));
  await context.catalog.mutate((draft) =>
    draft.put({ ...(draft.get("u") as Row), location: "t.lance/inner" }),
  );
  await client.call("dropTable", "t");
  assert.deepEqual((await client.call("listTables", "")).tables, ["u"]);
  assert.equal((await client.call("countTableRows", "u")).count, 2n);
});

/** Locations to which no gateway puts a table, but another program may. */
const AWAY = ["../outside", "file:///outside"];

test("a cascade takes tables with it whose locations lead out of the catalog, and touches nothing there", async (t) => {
  const { base, client, context, dropNamespace, notes } = await createWorld(t, "n$a");
  await mkdir(join(base, "../outside"));
  for (const [i, location] of AWAY.entries())
    await context.catalog.mutate((draft) =>
      draft.put({ objectId: `n$away${i}`, objectType: "table", location, properties: {} }),
    );
  await dropNamespace({});
  await assert.rejects(client.call("namespaceExists", "n"), failsWith("NamespaceNotFound"));
  assert.deepEqual([await readdir(join(base, "../outside")), await notes()], [[], []]);
});

test("a change whose process has ended is over although locations in it lead out of the catalog", async (t) => {
  const { base, client, directoryOf, takeRow, notes } = await createWorld(t, "n$a");
  const location = (await directoryOf("n$a")).slice(base.length + 1);
  await takeRow("n$a");
  const root = join(base, "..");
  await leaveIntent(root, {
    departures: [...AWAY, location].map((each) => ({ location: each, remove: true })),
  });
  await leaveVerdict(root, "committed");
  await client.call("declareTable", "other");
  await client.call("deregisterTable", "other");
  assert.deepEqual([await notes(), (await readdir(base)).includes(location)], [[], false]);
});

test("does not mistake a recreated directory for the one that a drop has removed", async (t) => {
  const { base, client, context, drop } = await createWorld(t, "t", "u");
  const layout: DirContext["layout"] = {
    ...context.layout,
    async removePutAside(location, ...rest) {
      const removed = await context.layout.removePutAside(location, ...rest);
      // Another implementation creates the table again, and removes it from the catalog.
      await mkdir(join(base, "t.lance"));
      await rename(join(base, "u.lance"), join(base, "t.lance"));
      assert.ok(removed);
      throw new Error("the process ends here");
    },
  };
  await drop("t", { layout });
  await client.call("declareTable", "other");
  await client.call("deregisterTable", "other");
  assert.ok((await readdir(join(base, "t.lance"))).includes("_versions"));
});

/** Returns a catalog that calls back right before its first commit. */
function beforeCommit({ catalog }: DirContext, happens: () => Promise<unknown>): Pick<DirContext, "catalog"> {
  let pending: (() => Promise<unknown>) | undefined = happens;
  return {
    catalog: {
      ...catalog,
      async mutate(mutation) {
        const work = pending;
        pending = undefined;
        await work?.();
        return catalog.mutate(mutation);
      },
    },
  };
}

const refusing = (context: DirContext) =>
  beforeCommit(context, () => Promise.reject(new LanceError("ServiceUnavailable", "the storage fails")));

for (const other of ["drop", "deregister"] as const) {
  test(`a drop removes the directory after work on the table, although the storage refused another ${other} beside it`, async (t) => {
    const { base, client, context, notes, ...world } = await createWorld(t, "t");
    // The deregistration looks before the drop writes its note.
    const journal = { ...context.journal, removing: async () => new Set<string>() };
    const beside = beforeCommit(context, () =>
      assert.rejects(world[other]("t", { ...refusing(context), journal }), failsWith("ServiceUnavailable")),
    );
    const endWork = await context.work.begin("t.lance");
    await world.drop("t", beside);
    await endWork();
    await resolveAbandoned(context);
    assert.deepEqual([await notes(), (await client.call("listTables", "")).tables], [[], []]);
    assert.ok(!(await readdir(base)).includes("t.lance"));
  });
}

test("a drop whose process ends in the middle of the removal is completed, although a deregistration lost against it", async (t) => {
  const { base, context, drop, deregister, notes } = await createWorld(t, "t");
  const { store, layout } = context;
  const moveDirectory = async (from: string, to: string) => {
    if (to.includes("/.dropped-")) throw new Error("the process ends here");
    return store.files?.moveDirectory(from, to) ?? false;
  };
  const files = { ...store.files, moveDirectory };
  const ending = createLayout({ ...store, files } as ObjectStore, layout.baseKey);
  const [committed, marked] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const removePutAside: DirContext["layout"]["removePutAside"] = async (...args) => {
    committed.resolve();
    await marked.promise;
    return ending.removePutAside(...args);
  };
  let dropped: Promise<unknown> | undefined;
  const besideDrop = afterNote(context, () => {
    dropped = drop("t", { layout: { ...layout, removePutAside } });
    return committed.promise;
  });
  await assert.rejects(deregister("t", besideDrop), failsWith("TableNotFound"));
  marked.resolve();
  await dropped;
  const aside = async () => (await readdir(base)).filter((name) => name.startsWith(".aside-"));
  assert.equal((await aside()).length, 1);
  await resolveAbandoned(context);
  assert.deepEqual([await aside(), await notes()], [[], []]);
});
