import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { create } from "@bufbuild/protobuf";
import { describe, it, vi } from "vitest";
import { beginCall } from "../../../test/support/caller.ts";
import { LanceNamespaceService } from "../../gen/lance/namespace/v1/service_pb.ts";
import { DescribeTableResponseSchema } from "../../gen/lance/namespace/v1/table_pb.ts";
import type { Call } from "../../namespace/call/call.ts";
import type { Principal } from "../../namespace/call/principal.ts";
import { LanceError } from "../../namespace/errors.ts";
import type { Backend } from "../../namespace/lance-namespace.ts";
import { createDescribedTables } from "./described-tables.ts";

const ID = ["t"];
const METHOD = LanceNamespaceService.method.countTableRows;

/** A request that the catalog has, and has not answered. */
interface Asked extends PromiseWithResolvers<string> {
  readonly call: Call;
}

/** Descriptions of a catalog that answers when it is told. */
function world(maxStalenessMs = 60_000) {
  const asked: Asked[] = [];
  const storageOptions: Record<string, string> = {};
  const operations: Backend["operations"] = {
    async describeTable(_, call) {
      const answer = { ...Promise.withResolvers<string>(), call };
      asked.push(answer);
      return create(DescribeTableResponseSchema, { location: await answer.promise, storageOptions });
    },
  };
  const descriptions = createDescribedTables({ operations } as Backend, maxStalenessMs);
  const describeAs = async (overrides: Partial<Call>, id: readonly string[] = ID) =>
    (await descriptions.describe(beginCall(METHOD, { id, ...overrides }), id)).location;
  const describeTable = () => describeAs({});
  return { asked, descriptions, describeAs, describeTable, storageOptions };
}

function answer(asked: readonly Asked[], location: string): void {
  for (const { resolve } of asked) resolve(location);
}

/** Answers requests as they come, until there are no more. */
async function answerAll(asked: readonly Asked[], locationOf: (call: Call) => string): Promise<void> {
  for (let answered = 0; answered < asked.length; await sleep(30))
    for (; answered < asked.length; answered += 1)
      answer(asked.slice(answered, answered + 1), locationOf((asked[answered] as Asked).call));
}

/** Credentials by which calls differ. */
const CALLERS: readonly Partial<Call>[] = [
  { headers: { authorization: "Bearer alice" } },
  { headers: { authorization: "Bearer bob" } },
  { headers: { "x-tenant": "a" } },
  { identity: { apiKey: "k", authToken: undefined } },
  { principal: { by: "oidc", name: "alice" } as Principal },
  {
    principal: { by: "oidc", name: "alice" } as Principal,
    brought: { apiKey: undefined, authToken: "narrow" },
  },
  { peer: "10.0.0.1" },
];

describe.each([
  ["strict", 0],
  ["stale", 60_000],
])("descriptions of tables that %s calls ask for at the same time", (_, maxStalenessMs) => {
  it("are shared with no other caller", async () => {
    const { asked, describeAs } = world(maxStalenessMs);
    const found = [0, 1, 2, 3, 4, 5, 6, 7].flatMap(() => CALLERS.map((caller) => describeAs(caller)));
    await answerAll(asked, textOf);
    const own = CALLERS.map((caller) => textOf(beginCall(METHOD, caller)));
    assert.equal(new Set(own).size, CALLERS.length);
    assert.deepEqual(
      await Promise.all(found),
      [0, 1, 2, 3, 4, 5, 6, 7].flatMap(() => own),
    );
    assert.ok(asked.length < found.length);
  });

  it("are shared with no call on another table, whatever the names of both", async () => {
    const { asked, describeAs } = world(maxStalenessMs);
    const found = [0, 1, 2, 3, 4, 5, 6, 7].flatMap(() => [
      describeAs({}, ["a$b"]),
      describeAs({}, ["a", "b"]),
    ]);
    await answerAll(asked, ({ id }) => id.join("/"));
    assert.deepEqual(
      await Promise.all(found),
      [0, 1, 2, 3, 4, 5, 6, 7].flatMap(() => ["a$b", "a/b"]),
    );
  });

  it("stay on their way when the call leaves in whose name they were asked for", async () => {
    const { asked, describeAs } = world(maxStalenessMs);
    const busy = [1, 2, 3, 4].map(() => describeAs({}));
    const leaving = new AbortController();
    const first = describeAs({ signal: leaving.signal });
    const second = describeAs({});
    leaving.abort(new LanceError("Cancelled", "the caller has left"));
    await assert.rejects(first, /has left/);
    answer(asked, "/a");
    await vi.waitFor(async () => {
      asked.at(-1)?.resolve("/a");
      assert.deepEqual(await Promise.race([second, sleep(5)]), "/a");
    });
    assert.deepEqual(await Promise.all(busy), ["/a", "/a", "/a", "/a"]);
  });

  it("are not asked for any longer when the last call has left", async () => {
    const { asked, describeAs } = world(maxStalenessMs);
    const leaving = new AbortController();
    const only = describeAs({ signal: leaving.signal });
    leaving.abort(new LanceError("Cancelled", "the caller has left"));
    await assert.rejects(only, /has left/);
    assert.ok(asked[0]?.call.signal.aborted);
    const next = describeAs({});
    await vi.waitFor(() => assert.equal(asked.length, 2));
    asked[1]?.resolve("/b");
    assert.equal(await next, "/b");
  });
});

/** Returns what the catalog may tell callers apart by. */
function textOf({ headers, identity, brought, principal, peer }: Call): string {
  return JSON.stringify([headers, identity, brought, principal, peer]);
}

describe("descriptions of tables that strict calls ask for", () => {
  it("answer no request that was sent before the call", async () => {
    const { asked, describeTable } = world(0);
    const early = [describeTable(), describeTable(), describeTable(), describeTable()];
    const sentBefore = asked.length;
    const late = [describeTable(), describeTable(), describeTable()];
    answer(asked.slice(0, sentBefore), "/before");
    assert.deepEqual(await Promise.all(early), ["/before", "/before", "/before", "/before"]);
    await vi.waitFor(() => assert.equal(asked.length, sentBefore + 1));
    asked[sentBefore]?.resolve("/after");
    assert.deepEqual(await Promise.all(late), ["/after", "/after", "/after"]);
    assert.equal(asked.length, sentBefore + 1);
    const alone = describeTable();
    asked[sentBefore + 1]?.resolve("/now");
    assert.equal(await alone, "/now");
  });

  it("have the deadline of the call that waits longest", async () => {
    const { asked, describeAs, describeTable } = world(0);
    const early = [describeTable(), describeTable(), describeTable(), describeTable()];
    const now = Date.now();
    const late = [10_000, 90_000, 20_000].map((ms) => describeAs({ deadline: now + ms }));
    answer(asked, "/a");
    await Promise.all(early);
    await vi.waitFor(() => assert.equal(asked.length, 5));
    assert.equal(asked[4]?.call.deadline, now + 90_000);
    asked[4]?.resolve("/a");
    await Promise.all(late);
  });

  it("answer a call that asks twice", async () => {
    const { asked, descriptions, describeTable } = world(0);
    const early = [describeTable(), describeTable(), describeTable(), describeTable()];
    const call = beginCall(METHOD, { id: ID });
    const twice = [descriptions.describe(call, ID), descriptions.describe(call, ID)];
    answer(asked, "/a");
    await vi.waitFor(() => assert.equal(asked.length, 5));
    asked[4]?.resolve("/b");
    assert.deepEqual(
      (await Promise.all(twice)).map(({ location }) => location),
      ["/b", "/b"],
    );
    await Promise.all(early);
  });

  it("are asked for by others while a catalog leaves requests without an answer", async () => {
    const { asked, describeTable } = world(0);
    const hanging = [describeTable(), describeTable(), describeTable(), describeTable()];
    const sent = asked.length;
    const late = describeTable();
    await vi.waitFor(() => assert.equal(asked.length, sent + 1), { timeout: 60_000 });
    asked[sent]?.resolve("/b");
    assert.equal(await late, "/b");
    answer(asked, "/a");
    await Promise.all(hanging);
  }, 20_000);

  it("are shared by calls whose headers end at the gateway", async () => {
    const { asked, describeAs } = world(0);
    const early = [1, 2, 3, 4].map(() => describeAs({}));
    const late = [5, 6, 7].map((ms) => describeAs({ headers: { "x-request-timeout-ms": `${ms}000` } }));
    answer(asked, "/a");
    await vi.waitFor(() => assert.equal(asked.length, 5));
    answer(asked, "/b");
    await Promise.all([...early, ...late]);
    assert.equal(asked.length, 5);
  });

  it("are not shared by calls with other demands on how new the answer is", async () => {
    const { asked, describeAs } = world(0);
    const demanding = (time: string) => describeAs({ headers: { "x-lancedb-min-timestamp": time } });
    const times = ["2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z"];
    const found = [0, 1, 2, 3, 4, 5, 6, 7].flatMap(() => times.map(demanding));
    assert.equal(asked.length, 8);
    answer(asked, "/a");
    await vi.waitFor(() => assert.equal(asked.length, 10));
    assert.deepEqual(
      new Set(asked.slice(8).map(({ call }) => call.headers["x-lancedb-min-timestamp"])),
      new Set(times),
    );
    answer(asked, "/a");
    await Promise.all(found);
  });
});

describe("descriptions of tables that are kept", () => {
  it("are shared on their way, by calls that may use them", async () => {
    const { asked, describeAs, describeTable } = world();
    const now = Date.now();
    const first = describeAs({ deadline: now + 20_000 });
    const shared = [1, 2, 3].map(() => describeAs({ deadline: now + 10_000 }));
    assert.equal(asked.length, 1);
    const patient = describeTable();
    const strict = describeAs({ headers: { "x-lancedb-min-version": "1" } });
    assert.deepEqual(
      asked.map(({ call }) => call.deadline),
      [undefined, undefined],
    );
    asked[0]?.resolve("/a");
    assert.deepEqual(await Promise.all([first, ...shared, patient]), ["/a", "/a", "/a", "/a", "/a"]);
    asked[1]?.resolve("/c");
    assert.equal(await strict, "/c");
    assert.equal(await describeTable(), "/c");
    assert.equal(asked.length, 2);
  });

  it("are asked for again by calls that have joined a failure", async () => {
    const { asked, describeTable } = world();
    const first = describeTable();
    const joined = [1, 2, 3].map(() => describeTable());
    asked[0]?.reject(new LanceError("TableNotFound", "no such table"));
    await assert.rejects(first, /no such table/);
    await vi.waitFor(() => assert.ok(asked.length > 1));
    for (let each = 0; each < 100; each += 1) {
      answer(asked, "/a");
      await sleep(1);
    }
    assert.deepEqual(await Promise.all(joined), ["/a", "/a", "/a"]);
    assert.equal(await describeTable(), "/a");
  });

  it("are not shared on their way longer than they may be kept", async () => {
    const { asked, describeTable } = world(20);
    const first = describeTable();
    await sleep(30);
    const second = describeTable();
    assert.equal(asked.length, 2);
    answer(asked, "/a");
    assert.deepEqual(await Promise.all([first, second]), ["/a", "/a"]);
  });

  it("serve other calls while one asks for a newer one, and go when the catalog denies it", async () => {
    const { asked, descriptions, describeTable } = world();
    const first = describeTable();
    asked[0]?.resolve("/a");
    await first;
    const renewed = descriptions.describe(beginCall(METHOD, { id: ID }), ID, true);
    assert.equal(await describeTable(), "/a");
    asked[1]?.resolve("/b");
    assert.equal((await renewed).location, "/b");
    assert.equal(await describeTable(), "/b");
    const denied = descriptions.describe(beginCall(METHOD, { id: ID }), ID, true);
    asked[2]?.reject(new LanceError("PermissionDenied", "not yours"));
    await assert.rejects(denied, /not yours/);
    const again = describeTable();
    assert.equal(asked.length, 4);
    asked[3]?.resolve("/c");
    assert.equal(await again, "/c");
  });

  it("are found from the first answer on, however many requests are on their way", async () => {
    const { asked, describeAs, describeTable } = world();
    const first = describeTable();
    const second = describeAs({ headers: { "x-lancedb-min-version": "1" } });
    asked[0]?.resolve("/a");
    assert.equal(await first, "/a");
    assert.equal(await describeTable(), "/a");
    asked[1]?.reject(new LanceError("ServiceUnavailable", "the catalog fails"));
    await assert.rejects(second, /the catalog fails/);
    assert.equal(await describeTable(), "/a");
    assert.equal(asked.length, 2);
  });

  it("are not kept after a failure, nor if the table was changed while they were on their way", async () => {
    const { asked, descriptions, describeTable } = world();
    const failing = describeTable();
    asked[0]?.reject(new LanceError("TableNotFound", "no such table"));
    await assert.rejects(failing, /no such table/);
    const late = describeTable();
    descriptions.forget(ID);
    asked[1]?.resolve("/old");
    assert.equal(await late, "/old");
    const newer = describeTable();
    asked[2]?.resolve("/new");
    assert.equal(await newer, "/new");
    assert.equal(await describeTable(), "/new");
    assert.equal(asked.length, 3);
  });

  it("are forgotten with each namespace above them, and with no other name", async () => {
    const { asked, descriptions, describeAs } = world();
    const tables = [["a"], ["a", "b"], ["a", "b", "c"], ["a,b"], ["ab"], ["x", "a"]];
    const describeAll = async () => {
      const before = asked.length;
      const found = tables.map((id) => describeAs({}, id));
      await answerAll(asked, () => "/l");
      await Promise.all(found);
      return asked.slice(before).map(({ call }) => call.id);
    };
    for (const [changed, forgotten] of [
      [[], tables],
      [["a", "b", "c"], [["a", "b", "c"]]],
      [
        ["a", "b"],
        [
          ["a", "b"],
          ["a", "b", "c"],
        ],
      ],
      [["a"], tables.slice(0, 3)],
      [["x"], [["x", "a"]]],
      [["b"], []],
      [[], tables],
    ] as const) {
      await describeAll();
      descriptions.forget(changed);
      assert.deepEqual(await describeAll(), forgotten, changed.join("."));
    }
  });

  it("cost a change of a table the length of its own name, however many are kept", async () => {
    const operations: Backend["operations"] = {
      describeTable: async () => create(DescribeTableResponseSchema, { location: "/l" }),
    };
    const descriptions = createDescribedTables({ operations } as Backend, 60_000);
    // More than are kept, so that the oldest make room.
    for (let i = 0; i < 12_000; i++) {
      const id = ["ns", `t${i}`];
      await descriptions.describe(beginCall(METHOD, { id }), id);
    }
    const { user, system } = process.cpuUsage();
    for (let i = 0; i < 50_000; i++) descriptions.forget(["ns", `other${i}`]);
    const used = process.cpuUsage();
    const millis = (used.user + used.system - user - system) / 1_000;
    assert.ok(millis < 1_000, `${millis} ms of CPU for 50,000 changes`);
  });

  it("are kept no longer than until a minute before their credentials expire", async (t) => {
    vi.useFakeTimers({ toFake: ["Date", "performance"] });
    t.onTestFinished(() => void vi.useRealTimers());
    const { asked, describeTable, storageOptions } = world();
    storageOptions["expires_at_millis"] = String(Date.now() + 70_000);
    const first = describeTable();
    asked[0]?.resolve("/a");
    assert.equal(await first, "/a");
    vi.advanceTimersByTime(9_000);
    assert.equal(await describeTable(), "/a");
    vi.advanceTimersByTime(2_000);
    const second = describeTable();
    asked[1]?.resolve("/b");
    assert.equal(await second, "/b");
    assert.equal(asked.length, 2);
  });
});
