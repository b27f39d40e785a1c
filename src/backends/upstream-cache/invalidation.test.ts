import assert from "node:assert/strict";
import { setImmediate as nextTurn } from "node:timers/promises";
import { create, type Message } from "@bufbuild/protobuf";
import fc from "fast-check";
import { test } from "vitest";
import { as, createCached, METHODS } from "../../../test/fixtures/upstreams/cache.ts";
import type { Call } from "../../namespace/call/call.ts";
import { LanceError } from "../../namespace/errors.ts";

const {
  describeTable,
  describeNamespace,
  alterTableAddColumns,
  dropNamespace,
  renameTable,
  batchCommitTables,
} = METHODS;

type Id = readonly string[];

const IDS: readonly Id[] = [[], ["a"], ["b"], ["a", "x"], ["a", "y"], ["b", "x"], ["a", "y", "z"]];
const TABLES = IDS.filter(({ length }) => length > 1);

const anId = fc.constantFrom(...IDS);
const aTable = fc.constantFrom(...TABLES);
const which = fc.nat(5);

const step = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({ do: fc.constant("read" as const), id: anId, who: fc.constantFrom("p", "q") }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("change" as const), ids: fc.tuple(aTable) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("drop" as const), ids: fc.tuple(anId) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("rename" as const), ids: fc.tuple(aTable, aTable) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant("batch" as const),
      ids: fc.array(aTable, { minLength: 1, maxLength: 3 }),
    }),
  },
  { weight: 5, arbitrary: fc.record({ do: fc.constant("work" as const), which }) },
  { weight: 6, arbitrary: fc.record({ do: fc.constant("answer" as const), which }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("fail" as const), which }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("cancel" as const), which }) },
);

type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;
type Write = Extract<Step, { ids: unknown }>;

const METHOD_OF = {
  change: alterTableAddColumns,
  drop: dropNamespace,
  rename: renameTable,
  batch: batchCommitTables,
};

/** Returns the request of a write. */
function requestOf({ do: kind, ids }: Write): object {
  const [first, second] = ids as readonly Id[];
  if (kind === "rename") return { newNamespaceId: second?.slice(0, -1), newTableName: second?.at(-1) };
  if (kind !== "batch") return {};
  const operations = (ids as readonly Id[]).map((id, index) => ({
    operation: { case: "deregisterTable", value: index % 2 === 0 ? { id } : { identifier: id.join("$") } },
  }));
  return first === undefined ? {} : { operations };
}

/** Whether two objects are equal, or either contains the other. */
function related(a: Id, b: Id): boolean {
  return a.slice(0, b.length).every((name, index) => name === b[index]);
}

/** A write in flight. */
interface Begun {
  readonly keys: readonly string[];
  /** The version that it gives to its objects. */
  version: number;
}

interface Pending {
  work(): void;
  answer(): void;
  fail(): void;
}

/**
 * Returns an upstream that works and answers when told; each write gives the objects that it touches a new version.
 */
function createUpstream() {
  const versions = new Map<string, number>(IDS.map((id) => [id.join("$"), 0]));
  /** Calls without an answer. */
  const pending: Pending[] = [];
  let clock = 0;

  function behind(call: Call, write?: Begun): Promise<Message> {
    const { promise, resolve, reject } = Promise.withResolvers<Message>();
    call.signal.addEventListener("abort", () => reject(call.signal.reason));
    let location: string | undefined;
    const work = () => {
      if (location !== undefined) return;
      if (write !== undefined) {
        clock += 1;
        write.version = clock;
        for (const key of write.keys) versions.set(key, clock);
      }
      location = `${versions.get(call.id.join("$"))} ${call.headers["authorization"]}`;
    };
    const answer = () => {
      work();
      const found = call.method === describeTable ? { location } : { properties: { location } };
      resolve(
        create(call.method.output, (call.method.localName.startsWith("describe") ? found : {}) as never),
      );
    };
    const fail = () => reject(new LanceError("ServiceUnavailable", "broken"));
    const one: Pending = { work, answer, fail };
    pending.push(one);
    const over = () => void pending.splice(pending.indexOf(one), 1);
    promise.then(over, over);
    return promise;
  }

  return { behind, pending, versions };
}

let hits = 0;

/** Runs steps and checks every read: it sees at least the writes of all calls that ended before it began. */
async function run(steps: readonly Step[]): Promise<void> {
  const upstream = createUpstream();
  const writes = new Map<AbortSignal, Begun>();
  const { ask } = createCached((_, call) => upstream.behind(call, writes.get(call.signal)));
  const cancels: AbortController[] = [];
  const ended: Promise<void>[] = [];
  /** The versions that a read which begins now must see. */
  const due = new Map(upstream.versions);
  const failures: unknown[] = [];

  async function read(id: Id, who: string, signal: AbortSignal): Promise<void> {
    const expected = due.get(id.join("$")) as number;
    const method = id.length > 1 ? describeTable : describeNamespace;
    const decisions: Call["decisions"] = [];
    const answer = await ask(method, id, { ...as(who), signal, decisions });
    const { location, properties } = answer as {
      location?: string;
      properties?: { location: string };
    } & Message;
    const [version, principal] = (location ?? properties?.location ?? "").split(" ");
    assert.equal(principal, who);
    assert.ok(
      Number(version) >= expected,
      `${id.join("$")}: ${version} where ${expected} was written before`,
    );
    if (decisions[0] === "cache_hit") hits += 1;
  }

  async function write(one: Write, signal: AbortSignal): Promise<void> {
    const touched = IDS.filter((each) => one.ids.some((name) => related(each, name)));
    const begun: Begun = { keys: touched.map((each) => each.join("$")), version: 0 };
    writes.set(signal, begun);
    const id = one.do === "batch" ? [] : (one.ids[0] as Id);
    try {
      await ask(METHOD_OF[one.do], id, { signal }, requestOf(one));
    } finally {
      for (const key of begun.keys) due.set(key, Math.max(due.get(key) as number, begun.version));
    }
  }

  for (const one of steps) {
    if ("which" in one) {
      const of = one.do === "cancel" ? cancels : upstream.pending;
      const chosen = of[one.which % Math.max(1, of.length)];
      if (chosen instanceof AbortController) chosen.abort(new LanceError("Cancelled", "gone"));
      else if (one.do !== "cancel") chosen?.[one.do]();
    } else {
      const controller = new AbortController();
      cancels.push(controller);
      const call =
        one.do === "read" ? read(one.id, one.who, controller.signal) : write(one, controller.signal);
      ended.push(
        call.catch((error: unknown) => {
          if (!(error instanceof LanceError)) failures.push(error);
        }),
      );
    }
    await nextTurn();
  }
  for (const { answer } of [...upstream.pending]) answer();
  await Promise.all(ended);
  assert.deepEqual(failures, []);
}

test("no read gets what a call that ended before it may have changed", async () => {
  await fc.assert(fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 60 }), run), { numRuns: 300 });
  assert.ok(hits > 20, `${hits} answers were used again`);
});
