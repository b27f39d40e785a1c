import assert from "node:assert/strict";
import type { ServerResponse } from "node:http";
import { create, type DescMethod } from "@bufbuild/protobuf";
import { describe, test, vi } from "vitest";
import {
  type Answer,
  backendOf,
  createTable,
  describeTable,
  dropTable,
  failing,
  first,
  half,
  insertIntoTable,
  KEY,
  outcome,
  peer,
  queryTable,
  reset,
  silent,
  unavailable,
  well,
} from "../../../test/fixtures/upstreams/peer.ts";
import { callOf, sendJson } from "../../../test/fixtures/upstreams/rest.ts";

const repeated: readonly [
  what: string,
  method: DescMethod,
  bad: Answer,
  headers: object,
  calls: number,
  seen: string,
][] = [
  ["a read after 503", describeTable, unavailable, {}, 2, "answer"],
  ["a read after 429", describeTable, (response) => response.writeHead(429).end(), {}, 2, "answer"],
  ["a read after a reset", describeTable, reset, {}, 2, "answer"],
  ["no write after 503", dropTable, unavailable, {}, 1, "ServiceUnavailable"],
  ["no write after a reset", dropTable, reset, {}, 1, "OutcomeUnknown"],
  ["a read after 502", describeTable, badGateway, {}, 2, "answer"],
  ["no write after 502", dropTable, badGateway, {}, 1, "OutcomeUnknown"],
  ["a write with a key after 502", dropTable, badGateway, KEY, 2, "answer"],
  ["no write after 502 of a server", dropTable, unavailableServer, {}, 1, "ServiceUnavailable"],
  ["a write with a key after 503", dropTable, unavailable, KEY, 2, "answer"],
  ["no read after half an answer", describeTable, half, {}, 1, "ServiceUnavailable"],
  [
    "no read after an answer",
    describeTable,
    (response) => sendJson(response, { code: 4 }, 404),
    {},
    1,
    "TableNotFound",
  ],
  [
    "no read after a redirect",
    describeTable,
    (response) => response.writeHead(302).end(),
    {},
    1,
    "ServiceUnavailable",
  ],
  ["no read that is to wait for long", describeTable, patient, {}, 1, "Throttling"],
];

function badGateway(response: ServerResponse): void {
  response.writeHead(502, { "content-type": "text/html" }).end("<h1>Bad Gateway</h1>");
}

/** The server says itself that it did nothing. */
function unavailableServer(response: ServerResponse): void {
  sendJson(response, { code: 17 }, 502);
}

function patient(response: ServerResponse): void {
  response.writeHead(429, { "retry-after": "3600" }).end();
}

describe("what is sent again", () => {
  for (const [what, method, bad, headers, calls, seen] of repeated) {
    test(what, async () => {
      const server = await peer(first(1, bad));
      const backend = await backendOf({ uri: server.uri });
      const found = await outcome(backend, method, { headers: headers as Record<string, string> });
      assert.deepEqual([found.seen, server.count], [seen, calls], String(found.error));
      assert.deepEqual(found.decisions, calls === 2 ? ["retry"] : []);
    });
  }

  test("a key that the upstream does not get is none", async () => {
    const server = await peer(first(1, unavailable));
    const backend = await backendOf({ uri: server.uri, passHeaders: ["traceparent"] });
    const { seen } = await outcome(backend, dropTable, { headers: KEY });
    assert.deepEqual([seen, server.count], ["ServiceUnavailable", 1]);
  });

  test("at most so often, with what the last answer said", async () => {
    const server = await peer((response, count) =>
      sendJson(response, { code: 17, error: `no ${count}` }, 503),
    );
    const { error, decisions } = await outcome(await backendOf({ uri: server.uri }), describeTable);
    assert.equal(error?.message, "no 3");
    assert.deepEqual(decisions, ["retry", "retry"]);
  });

  test("a query before its first bytes, and never after them", async () => {
    for (const [bad, count] of [
      [unavailable, 2],
      [half, 1],
    ] as const) {
      const server = await peer(first(1, bad));
      const backend = await backendOf({ uri: server.uri });
      const handler = backend.operations.queryTable;
      const read = async () => {
        for await (const _ of handler?.(create(queryTable.input), callOf(queryTable)) ?? []);
      };
      if (count === 1) await assert.rejects(read, failing("ServiceUnavailable"));
      else await read();
      assert.equal(server.count, count);
    }
  });
});

describe("several addresses", () => {
  test("take calls in turn", async () => {
    const servers = [await peer(well), await peer(well)];
    const backend = await backendOf({ uri: servers.map(({ uri }) => uri) });
    for (let call = 0; call < 6; call += 1) await outcome(backend, describeTable);
    assert.deepEqual(
      servers.map(({ count }) => count),
      [3, 3],
    );
  });

  test("a write, and an upload too, goes on to another address when the first refuses the connection", async () => {
    const server = await peer(well);
    const gone = await peer(well);
    gone.close();
    const backend = await backendOf({ uri: [gone.uri, server.uri], resilience: { circuitFailures: 0 } });
    for (let call = 0; call < 4; call += 1) {
      assert.equal((await outcome(backend, dropTable)).seen, "answer");
      const sent: string[] = [];
      async function* pieces() {
        sent.push("read");
        yield Buffer.from("ARROW1");
      }
      for (const method of [createTable, insertIntoTable]) {
        const handler = backend.operations[method.localName as "insertIntoTable"];
        await handler?.(create(method.input) as never, pieces(), callOf(method));
      }
      assert.deepEqual(sent, ["read", "read"]);
    }
    assert.equal(server.count, 12);
    assert.equal(await backend.ready(), true);
  });

  test("stops calling an address that fails", async () => {
    const servers = [await peer(unavailable), await peer(well)];
    const backend = await backendOf({
      uri: servers.map(({ uri }) => uri),
      resilience: { circuitFailures: 3, circuitOpenMs: 60_000 },
    });
    const seen = new Set<string>();
    for (let call = 0; call < 20; call += 1) seen.add((await outcome(backend, describeTable)).seen);
    assert.deepEqual([...seen], ["answer"]);
    assert.equal(servers[0]?.count, 3);
  });

  test("a read that takes long is made at another one too, and the slow one is ended", async () => {
    const ended = Promise.withResolvers<void>();
    const slow = await peer((response) => response.on("close", () => ended.resolve()));
    const quick = await peer(well);
    const backend = await backendOf({ uri: [slow.uri, quick.uri], resilience: { hedgeAfterMs: 200 } });
    const found = [await outcome(backend, describeTable), await outcome(backend, describeTable)];
    // On a busy machine the quick one may take long, too; then the slow one is called as well, and never wins.
    const won = found
      .map(({ decisions }) => decisions)
      .filter((decisions) => decisions.includes("hedge_won"));
    assert.deepEqual(won, [["hedge", "hedge_won"]]);
    assert.deepEqual(
      found.map(({ seen }) => seen),
      ["answer", "answer"],
    );
    await ended.promise;
  });
});

test("an upstream that is gone is not called until it may be back, and then once", async (t) => {
  // A busy machine must not end the time of the open circuit.
  vi.useFakeTimers({ toFake: ["performance"] });
  t.onTestFinished(() => void vi.useRealTimers());
  const gone = await peer(well);
  gone.close();
  const backend = await backendOf({
    uri: gone.uri,
    resilience: { circuitFailures: 2, circuitOpenMs: 500, retries: 0 },
  });
  const decisions: (readonly string[])[] = [];
  for (let call = 0; call < 3; call += 1) {
    const found = await outcome(backend, dropTable);
    assert.equal(found.seen, "ServiceUnavailable");
    decisions.push(found.decisions);
    if (call === 2) assert.equal(found.error?.headers["retry-after"], "1");
  }
  assert.deepEqual(decisions, [[], ["circuit_open"], ["circuit_open"]]);
  const back = await peer(well, gone.port);
  assert.deepEqual((await outcome(backend, dropTable)).decisions, ["circuit_open"]);
  vi.advanceTimersByTime(500);
  const found = await outcome(backend, dropTable);
  assert.deepEqual([found.seen, found.decisions], ["answer", ["circuit_half_open"]]);
  assert.equal(back.count, 1);
});

test("the time for the whole call is that of all attempts", async () => {
  const server = await peer((response, count, request) =>
    (count === 1 ? unavailable : silent)(response, count, request),
  );
  const backend = await backendOf({ uri: server.uri, timeLimits: { totalMs: 600 } });
  const { seen, decisions } = await outcome(backend, describeTable);
  assert.deepEqual([seen, decisions, server.count], ["DeadlineExceeded", ["retry"], 2]);
});
