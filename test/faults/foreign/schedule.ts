import assert from "node:assert/strict";
import { findOrphans } from "../../../src/backends/composed/find-orphans.ts";
import { type ErrorName, LanceError } from "../../../src/namespace/errors.ts";
import { people, personStream, rowsOf } from "../../support/arrow.ts";
import { CallError } from "../../support/client.ts";
import type { Random } from "../../support/random.ts";
import { S3_BUCKET } from "../../support/s3-server.ts";
import { FAULTS, type Fault, type Gateway, NAMESPACE, startWorld, TABLES, type World } from "./world.ts";

/** Number of changes in a schedule, each of which may meet a fault. */
const CHANGES = 5;

/** How long a gateway waits for the catalog, in milliseconds: longer than a busy machine keeps an answer back. */
const PATIENCE_MS = 2_000;

const NAMES = ["a", "b", "c"];

/** Name of the index of each table. */
const INDEX = "by_id";

/** Number of faults of each kind that came before the end of a change. */
export type Faults = Map<Fault["kind"], number>;

/** Ids of the rows of each table that has data, in order; `undefined` for a declared one. */
type State = ReadonlyMap<string, readonly number[] | undefined>;

/** A change, and the states that it may leave when its outcome is open. */
interface Change {
  readonly what: string;
  /** Number of requests that most changes of its kind stay below. */
  readonly requests: number;
  run(gateway: Gateway): Promise<unknown>;
  after(state: State): State;
  /** Whether a gateway makes it that looks after the table then, and removes old versions. Default: false. */
  readonly hasUpkeep?: boolean;
  /** Table whose index is there once the change is acknowledged. Default: none. */
  readonly indexes?: string;
  /** Old and new name of a table. Default: no table gets another name. */
  readonly renames?: readonly [from: string, to: string];
  /** States besides the ones before and after. Default: none. */
  between?(state: State): State[];
}

const ID = (name: string) => ({ id: [NAMESPACE, name] });

const withTable = (state: State, name: string, rows: readonly number[] | undefined): State =>
  new Map([...state, [name, rows]]);
const without = (state: State, name: string): State => new Map([...state].filter(([each]) => each !== name));

let nextId = 0;
/** Returns rows that no other change writes. */
function newRows(random: Random) {
  const rows = people(1 + random.below(3), nextId);
  nextId += rows.length;
  return { ids: rows.map(({ id }) => id), stream: personStream(rows) };
}

function drawChange(random: Random, state: State): Change {
  const name = random.pick(NAMES);
  const { ids, stream } = newRows(random);
  const rows = state.get(name);
  const inserted = (known: State) => withTable(known, name, [...(known.get(name) ?? []), ...ids]);
  if (!state.has(name) || rows === undefined) {
    return {
      what: `create ${name}`,
      requests: 24,
      run: ({ client }) => client.createTable(ID(name), stream),
      after: (known) => withTable(known, name, ids),
      between: (known) => [withTable(known, name, undefined)],
    };
  }
  const free = NAMES.find((each) => !state.has(each));
  const kind = random.below(free === undefined ? 6 : 7);
  if (kind < 2) {
    return {
      what: `insert into ${name}`,
      requests: 16,
      run: ({ client }) => client.insertIntoTable(ID(name), stream),
      after: inserted,
    };
  }
  if (kind < 4) {
    return {
      what: `insert into ${name}, and upkeep`,
      requests: 80,
      hasUpkeep: true,
      async run(gateway) {
        await gateway.client.insertIntoTable(ID(name), stream);
        await gateway.lookedAfter();
      },
      after: inserted,
    };
  }
  if (kind === 4) {
    return {
      what: `index ${name}`,
      requests: 50,
      indexes: name,
      run: ({ client }) =>
        client.createTableIndex({ ...ID(name), column: "id", indexType: "BTREE", name: INDEX }),
      after: (known) => known,
    };
  }
  if (kind === 5) {
    return {
      what: `drop ${name}`,
      requests: 3,
      run: ({ client }) => client.dropTable(ID(name)),
      after: (known) => without(known, name),
    };
  }
  return {
    what: `rename ${name} to ${free}`,
    requests: 6,
    renames: [name, free as string],
    run: ({ client }) => client.renameTable({ ...ID(name), newTableName: free as string }),
    after: (known) => withTable(without(known, name), free as string, known.get(name)),
  };
}

/** Reads the state through a gateway that meets no faults. Credentials that have ended early cost it a call for each table. */
async function observe(gateway: Gateway, world: World): Promise<State> {
  for (let tries = 0; ; tries++) {
    try {
      return await look(gateway, world);
    } catch (error) {
      if (tries === NAMES.length || kindOf(error) !== "ServiceUnavailable") throw error;
    }
  }
}

async function look({ client }: Gateway, world: World): Promise<State> {
  const { tables } = await client.listTables({ id: [NAMESPACE] });
  assert.deepEqual([...tables].sort(), [...world.locations().keys()].sort());
  const state = new Map<string, readonly number[] | undefined>();
  for (const name of tables.sort()) {
    const { isOnlyDeclared } = await client.describeTable({ ...ID(name), checkDeclared: true });
    if (isOnlyDeclared) state.set(name, undefined);
    else {
      const rows = rowsOf((await client.queryTable(ID(name))).bytes);
      state.set(
        name,
        rows.map(({ id }) => Number(id)).sort((a, b) => a - b),
      );
    }
  }
  return state;
}

const sorted = (state: State) =>
  [...state]
    .map(([name, rows]) => [name, rows && [...rows].sort((a, b) => a - b)] as const)
    .sort(([a], [b]) => (a < b ? -1 : 1));

const isEqual = (one: State, other: State) => JSON.stringify(sorted(one)) === JSON.stringify(sorted(other));

/** Errors after which the outcome is open. */
const OPEN: ReadonlySet<ErrorName> = new Set(["OutcomeUnknown", "DeadlineExceeded"]);

/** Errors that no fault explains. */
const UNEXPECTED: ReadonlySet<ErrorName> = new Set(["Internal", "DataLoss"]);

/** Returns the row of a failure of a call; undefined for a success. @throws everything else */
function kindOf(failure: unknown): ErrorName | undefined {
  if (failure === undefined) return undefined;
  const { cause } = failure as Error;
  if (failure instanceof CallError && cause instanceof LanceError) return cause.kind;
  throw failure;
}

/** Keys of the objects that belong to a table, without those of rows on their way. */
function filesOf(world: World): Map<string, string[]> {
  return new Map(
    [...world.locations()].map(([name, location]) => {
      const prefix = `${location.replace(/^s3:\/\/[^/]+\//, "")}/`;
      const keys = world.keys().filter((key) => key.startsWith(prefix));
      return [name, keys.filter((key) => !key.slice(prefix.length).startsWith("."))];
    }),
  );
}

/** Checks that every object of the bucket belongs to a table, or to something that `gc` finds. */
async function checkOrphans(world: World): Promise<void> {
  const owners = [...world.locations().values()];
  const found: string[] = [];
  const orphans = findOrphans({
    places: [TABLES],
    storageOptionsOf: () => world.storageOptions,
    locations: async function* locations() {
      yield* owners;
    },
    olderThan: -60_000,
    removes: false,
  });
  for await (const { path } of orphans) found.push(path);
  const missed = world.keys().filter((key) => {
    const uri = `s3://${S3_BUCKET}/${key}`;
    // Leases, jobs and notes of a table stay with it.
    const isStaged = uri.includes("/.") && !uri.includes("/.lance-gateway/");
    return !(isStaged ? found : [...owners, ...found]).some((each) => uri.startsWith(`${each}/`));
  });
  assert.deepEqual(missed, [], "gc finds all objects without a table");
  const taken = found.filter((path) => owners.includes(path));
  assert.deepEqual(taken, [], "gc finds no table of the catalog");
}

/** Checks that tables have the indices whose builds were acknowledged, and answer by them. */
async function checkIndices({ client }: Gateway, names: Iterable<string>): Promise<void> {
  for (const name of names) {
    const { indexes } = await client.listTableIndices(ID(name));
    assert.ok(
      indexes.some(({ indexName }) => indexName === INDEX),
      `${name} has lost its index`,
    );
    const { count } = await client.countTableRows({ ...ID(name), predicate: "id >= 0" });
    assert.equal(count, (await client.countTableRows(ID(name))).count);
  }
}

/**
 * Plays a schedule of changes, some of which meet a fault.
 *
 * @param met counts the faults
 * @throws Error for a state that the answers do not allow, with the changes so far
 */
export async function play(random: Random, met: Faults): Promise<void> {
  const world = await startWorld();
  const reader = await world.open();
  let writer = await world.open(PATIENCE_MS);
  const said: string[] = [];
  /** Tables whose index was acknowledged. */
  let indexed = new Set<string>();
  try {
    let state = await observe(reader, world);
    for (let at = 0; at < CHANGES; at++) {
      const change = drawChange(random, state);
      const kinds = Object.keys(FAULTS) as Fault["kind"][];
      const fault: Fault = { kind: random.pick(kinds), at: random.below(change.requests) };
      const [before, files] = [world.locations(), filesOf(world)];
      if (change.hasUpkeep) {
        await writer.close();
        writer = await world.open(PATIENCE_MS, true);
      }
      writer.arm(fault);
      const failure: unknown = await change.run(writer).then(
        () => undefined,
        (error: unknown) => error,
      );
      if (writer.hasMet()) met.set(fault.kind, (met.get(fault.kind) ?? 0) + 1);
      const killed = writer.isKilled();
      said.push(
        `${change.what}, ${JSON.stringify(fault)}: ${killed ? "killed" : (kindOf(failure) ?? "done")}`,
      );
      if (killed || change.hasUpkeep) {
        await writer.close();
        writer = await world.open(PATIENCE_MS);
      } else writer.arm();
      const kind = kindOf(failure);
      const explained = killed || fault.kind === "fail";
      if (kind !== undefined && UNEXPECTED.has(kind) && !explained) throw failure;
      const seen = await observe(reader, world);
      const isOpen = explained || (kind !== undefined && OPEN.has(kind));
      const undone = [state, ...(change.between?.(state) ?? [])];
      const allowed =
        failure === undefined ? [change.after(state)] : isOpen ? [...undone, change.after(state)] : undone;
      assert.ok(
        allowed.some((each) => isEqual(each, seen)),
        `saw ${JSON.stringify(sorted(seen))} instead of ${JSON.stringify(allowed.map(sorted))}`,
      );
      if (failure === undefined && change.indexes !== undefined) indexed.add(change.indexes);
      const [from = "", to = ""] = change.renames ?? [];
      indexed = new Set([...indexed].map((name) => (name === from && !seen.has(from) ? to : name)));
      indexed = indexed.intersection(new Map([...seen].filter(([, rows]) => rows !== undefined)));
      await checkIndices(reader, indexed);
      for (const [name, location] of change.hasUpkeep ? [] : world.locations()) {
        const [old] = [...before].find(([, each]) => each === location) ?? [];
        const kept = filesOf(world).get(name) ?? [];
        const lost = (old === undefined ? [] : (files.get(old) ?? [])).filter((key) => !kept.includes(key));
        // Rows that are not part of a version yet are moved back when their commit fails.
        assert.deepEqual(lost, [], `files of ${name} are gone`);
      }
      state = seen;
    }
    await checkOrphans(world);
  } catch (error) {
    throw new Error(said.join("\n"), { cause: error });
  } finally {
    await writer.close();
    await reader.close();
    await world.close();
  }
}
