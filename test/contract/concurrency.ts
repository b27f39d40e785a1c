import assert from "node:assert/strict";
import { describe, test } from "vitest";
import type { ErrorName } from "../../src/namespace/errors.ts";
import { people, personStream } from "../support/arrow.ts";
import { refused } from "../support/expect.ts";
import type { World } from "./world.ts";

const RACERS = 16;

/** Starts many equal calls at once; one must succeed, and all others must fail with the given error. */
async function race(loss: ErrorName, call: (racer: number) => Promise<unknown>): Promise<void> {
  const calls = Array.from({ length: RACERS }, (_, racer) => call(racer));
  const outcomes = await Promise.allSettled(calls);
  assert.equal(outcomes.filter(({ status }) => status === "fulfilled").length, 1, "one winner");
  for (const [racer, { status }] of outcomes.entries()) {
    if (status === "rejected") await refused(loss, calls[racer] as Promise<unknown>);
  }
}

/** Concurrent calls on names, and on rows. */
export function concurrencyTests(world: World): void {
  nameConcurrencyTests(world);
  rowConcurrencyTests(world);
}

function nameConcurrencyTests(world: World): void {
  describe("calls on names at the same time", () => {
    test("exactly one of many creators of a namespace wins", async () => {
      const id = [await world.namespace(), "contested"];
      await race("NamespaceAlreadyExists", (racer) =>
        world.client.createNamespace({ id, properties: { racer: String(racer) } }),
      );
      assert.deepEqual((await world.client.listNamespaces({ id: id.slice(0, 1) })).namespaces, ["contested"]);
    });

    test("exactly one of many declarers of a table wins", async () => {
      const id = [await world.namespace(), "contested"];
      await race("TableAlreadyExists", () => world.client.declareTable({ id }));
      assert.deepEqual((await world.client.listTables({ id: id.slice(0, 1) })).tables, ["contested"]);
    });

    test("exactly one of many droppers of a table and of a namespace wins", async () => {
      const id = await world.declared();
      await race("TableNotFound", () => world.client.dropTable({ id }));
      await race("NamespaceNotFound", () => world.client.dropNamespace({ id: id.slice(0, 1) }));
    });

    test("a namespace and a table never share a name", async () => {
      const id = [await world.namespace(), "contested"];
      const outcomes = await Promise.allSettled([
        world.client.createNamespace({ id }),
        world.client.declareTable({ id }),
      ]);
      assert.equal(outcomes.filter(({ status }) => status === "fulfilled").length, 1);
    });

    test("a table is not created in a namespace that is dropped at the same time", async () => {
      for (let round = 0; round < 4; round += 1) {
        const namespace = await world.namespace();
        const [declared, dropped] = await Promise.allSettled([
          world.client.declareTable({ id: [namespace, "t"] }),
          world.client.dropNamespace({ id: [namespace] }),
        ]);
        assert.notEqual(declared.status, dropped.status);
      }
    });

    test("creators of different names all win", async () => {
      const namespace = await world.namespace();
      const names = Array.from({ length: RACERS }, (_, index) => `t${index}`);
      await Promise.all(names.map((name) => world.client.declareTable({ id: [namespace, name] })));
      const { tables } = await world.client.listTables({ id: [namespace] });
      assert.deepEqual(tables.toSorted(), names.toSorted());
    });
  });
}

/** Concurrent calls on rows. */
export function rowConcurrencyTests(world: World): void {
  describe("calls on rows at the same time", () => {
    test("exactly one of many creators of a table wins, and the table has the winner's rows", async () => {
      const id = [await world.namespace(), "contested"];
      let winner = -1;
      await race("TableAlreadyExists", async (racer) => {
        await world.client.createTable({ id }, personStream(people(racer + 1)));
        winner = racer;
      });
      assert.equal(await world.count(id), winner + 1);
    });

    test("all rows of concurrent inserts arrive, each in the version that its answer names", async () => {
      const id = await world.table([]);
      const answers = await Promise.all(
        Array.from({ length: RACERS }, (_, racer) =>
          world.client.insertIntoTable({ id }, personStream(people(1, racer))),
        ),
      );
      assert.equal(await world.count(id), RACERS);
      for (const [racer, { version = 0n }] of answers.entries()) {
        const { count } = await world.client.countTableRows({ id, version, predicate: `id = ${racer}` });
        assert.equal(count, 1n, `row ${racer} is in version ${version}`);
      }
    });

    test("a change is seen by every read that begins after it", async () => {
      const namespace = await world.namespace();
      for (let index = 0; index < 8; index += 1) {
        const id = [namespace, `t${index}`];
        await world.client.createTable({ id }, personStream(people(1)));
        const reads = await Promise.all([
          world.client.listTables({ id: [namespace] }),
          world.client.describeTable({ id }),
          world.client.countTableRows({ id }),
        ]);
        assert.equal(reads[0].tables.length, index + 1);
        assert.equal(reads[2].count, 1n);
      }
    });
  });
}
