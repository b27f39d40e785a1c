import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, type TestContext, test } from "vitest";
import { InsertMode } from "../../src/gen/lance/namespace/v1/data_pb.ts";
import { type ErrorName, isLanceError, LanceError } from "../../src/namespace/errors.ts";
import { people, personStream, rowsOf } from "../support/arrow.ts";
import { openManaged } from "../support/catalogs/managed-catalog.ts";
import { CallError, type LanceClient } from "../support/client.ts";
import { refused } from "../support/expect.ts";
import { createRandom, type Random } from "../support/random.ts";
import { repeats } from "../support/repeats.ts";
import { seedOf } from "../support/seed.ts";

const ID = ["t"];
const SEED = seedOf("MANAGED_SEED");
/** Number of changes that meet a fault; `MANAGED_CUTS=1000` is the long run. */
const COUNT = repeats("MANAGED_CUTS", 20);

/** Faults at a commit, and how many requests of the change they meet. */
const FAULTS = {
  "refuse once": "the catalog is busy and does nothing",
  "refuse always": "the catalog stays busy",
  deny: "the catalog does not let the caller commit",
  expire: "the token of the caller has expired",
  lose: "the catalog commits, and its answer is lost",
  "lose always": "no answer about versions arrives any more",
  repeat: "a proxy repeats the request, and answers with the conflict of the repetition",
  late: "the request fails, and the catalog carries it out later",
  "kill before": "the gateway ends before the catalog gets the request",
  "kill after": "the gateway ends before it gets the answer",
} as const;
type Fault = keyof typeof FAULTS;
const KINDS = Object.keys(FAULTS) as Fault[];

/** Longest time by which a request is late, in milliseconds. */
const LATE_MS = 700;

async function openFailing(t: Pick<TestContext, "onTestFinished">) {
  const armed: { fault: Fault | undefined } = { fault: undefined };
  const late: Promise<unknown>[] = [];
  const lost = () => new LanceError("DeadlineExceeded", "the upstream did not answer in time");
  const busy = () => new LanceError("ServiceUnavailable", "the upstream is busy");
  const world = await openManaged(t, (operations) => {
    const unlessSilent =
      <A extends unknown[], T>(handler: (...args: A) => Promise<T>) =>
      async (...args: A) => {
        if (armed.fault === "lose always" && isLost.now) throw lost();
        return handler(...args);
      };
    const isLost = { now: false };
    return {
      listTableVersions: unlessSilent(operations.listTableVersions),
      describeTableVersion: unlessSilent(operations.describeTableVersion),
      async createTableVersion(request, call) {
        const commit = () => operations.createTableVersion(request, call);
        const { fault } = armed;
        const isLasting = fault === "refuse always" || fault === "lose always" || fault === "deny";
        if (!isLasting) armed.fault = undefined;
        isLost.now = fault === "lose always";
        switch (fault) {
          case undefined:
            return commit();
          case "refuse once":
          case "refuse always":
            throw busy();
          case "deny":
            throw new LanceError("PermissionDenied", "readers do not commit");
          case "expire":
            throw new LanceError("Unauthenticated", "the token has expired");
          case "repeat":
            await commit();
            return commit();
          case "late":
            late.push(sleep(Math.random() * LATE_MS).then(() => commit().catch(() => {})));
            throw lost();
          case "kill before":
            return new Promise(() => {});
          case "kill after":
            await commit();
            return new Promise(() => {});
          default:
            await commit();
            throw lost();
        }
      },
    };
  });
  return {
    ...world,
    arm: (fault: Fault | undefined) => {
      armed.fault = fault;
    },
    /** Waits for the requests that are late. */
    settled: () => Promise.all(late),
  };
}

/** Ids of the rows, in order, and the metadata of the schema. */
type State = { readonly ids: readonly number[]; readonly note: string };

interface Change {
  readonly what: string;
  run(client: LanceClient): Promise<unknown>;
  after(state: State): State;
}

let nextId = 0;

function drawChange(random: Random, kind: number): Change {
  const rows = people(1 + random.below(3), nextId);
  nextId += rows.length;
  const ids = rows.map(({ id }) => id);
  const add = ({ ids: known, note }: State): State => ({ ids: [...known, ...ids], note });
  const on = ["id"];
  const changes: readonly Change[] = [
    { what: "insert", run: (c) => c.insertIntoTable({ id: ID }, personStream(rows)), after: add },
    {
      what: "merge",
      run: (c) =>
        c.mergeInsertIntoTable(
          { id: ID, on, whenMatchedUpdateAll: true, whenNotMatchedInsertAll: true },
          personStream(rows),
        ),
      after: add,
    },
    {
      what: "delete",
      run: (c) => c.deleteFromTable({ id: ID, predicate: "id % 2 = 0" }),
      after: ({ ids: known, note }) => ({ ids: known.filter((id) => id % 2 !== 0), note }),
    },
    {
      what: "update",
      run: (c) => c.updateTable({ id: ID, updates: [{ column: "id", expression: "id + 1000" }] }),
      after: ({ ids: known, note }) => ({ ids: known.map((id) => id + 1000), note }),
    },
    {
      what: "overwrite",
      run: (c) => c.insertIntoTable({ id: ID, mode: InsertMode.OVERWRITE }, personStream(rows)),
      after: () => ({ ids, note: "" }),
    },
    {
      what: "metadata",
      run: (c) => c.updateTableSchemaMetadata({ id: ID, metadata: { note: String(nextId) } }),
      after: ({ ids: known }) => ({ ids: known, note: String(nextId) }),
    },
  ];
  return changes[kind % changes.length] as Change;
}

async function look(client: LanceClient): Promise<State> {
  const rows = rowsOf((await client.queryTable({ id: ID })).bytes);
  const { schema } = await client.describeTable({ id: ID, loadDetailedMetadata: true });
  const ids = rows.map(({ id }) => Number(id)).sort((a, b) => a - b);
  return { ids, note: schema?.metadata["note"] ?? "" };
}

const textOf = ({ ids, note }: State) => JSON.stringify([[...ids].sort((a, b) => a - b), note]);

/** Errors after which the outcome is open. */
const OPEN: ReadonlySet<ErrorName> = new Set(["OutcomeUnknown", "DeadlineExceeded", "ServiceUnavailable"]);

describe("changes of a table whose versions a catalog commits", () => {
  test("are done once or not at all, whatever happens at the commit", async (t) => {
    const world = await openFailing(t as TestContext);
    const reader = world.another();
    await reader.createTable({ id: ID }, personStream([]));
    const random = createRandom(SEED);
    let [client, state] = [world.client, await look(reader)];
    for (let at = 0; at < COUNT; at++) {
      const fault = KINDS[at % KINDS.length] as Fault;
      const isKilled = fault.startsWith("kill");
      // In this process, a killed merge would hold its lock for good.
      let change = drawChange(random, at + Math.floor(at / KINDS.length));
      if (isKilled && change.what === "merge") change = drawChange(random, 0);
      const after = change.after(state);
      world.arm(fault);
      const run = change.run(client).then(
        () => undefined,
        (error: unknown) => error,
      );
      const failure: unknown = await (isKilled ? Promise.race([run, sleep(1_000, "killed")]) : run);
      world.arm(undefined);
      await world.settled();
      if (failure === "killed") client = world.another();
      const said = `${at}: ${change.what}, ${fault}: ${failure ?? "done"}`;
      const cause = failure instanceof CallError ? failure.cause : undefined;
      if (failure !== undefined && failure !== "killed") assert.ok(cause instanceof LanceError, said);
      const isOpen = failure === "killed" || (cause instanceof LanceError && OPEN.has(cause.kind));
      const allowed = failure === undefined ? [after] : isOpen ? [state, after] : [state];
      const seen = await look(reader);
      assert.ok(
        allowed.some((each) => textOf(each) === textOf(seen)),
        `${said}: saw ${textOf(seen)}`,
      );
      if (fault === "lose" || fault === "repeat" || fault === "refuse once")
        assert.equal(failure, undefined, said);
      if (fault === "refuse always" || fault === "lose always" || fault === "late")
        assert.ok(failure === undefined || isLanceError(cause, "OutcomeUnknown"), said);
      state = seen;
    }
    assert.deepEqual(await world.uncommitted(), []);
  });

  test("are told to have an unknown outcome if the catalog stays silent, or the next answer is a refusal", async (t) => {
    const world = await openFailing(t as TestContext);
    await world.client.createTable({ id: ID }, personStream(people(2)));
    for (const change of [
      (client: LanceClient) => client.insertIntoTable({ id: ID }, personStream(people(1, 5))),
      (client: LanceClient) => client.updateTableSchemaMetadata({ id: ID, metadata: { a: "1" } }),
    ]) {
      world.arm("refuse always");
      await refused("OutcomeUnknown", change(world.client));
      world.arm(undefined);
      assert.equal((await world.client.describeTableVersion({ id: ID })).version?.version, 1n);
    }
  });
});
