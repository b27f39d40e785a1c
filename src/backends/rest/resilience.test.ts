import assert from "node:assert/strict";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { create, type DescMethod } from "@bufbuild/protobuf";
import { afterAll, describe, test } from "vitest";
import { LanceNamespaceService } from "../../gen/lance/namespace/v1/service_pb.ts";
import type { Call } from "../../namespace/call.ts";
import { type ErrorName, LanceError } from "../../namespace/errors.ts";
import type { Backend } from "../../namespace/lance-namespace.ts";
import type { HostAddress } from "../resilience/host-addresses.ts";
import { callOf, callUnary, sendJson } from "./fixture.ts";
import { createRestBackend } from "./index.ts";
import type { RestBackendOptions } from "./options.ts";

const { describeTable, dropTable, createTable, insertIntoTable, queryTable } = LanceNamespaceService.method;

type Answer = (response: ServerResponse, count: number, request: IncomingMessage) => void;

interface Peer {
  readonly port: number;
  readonly uri: string;
  /** The requests so far. */
  count: number;
  onConnection(listener: () => void): void;
  close(): void;
}

const closers: (() => unknown)[] = [];
afterAll(() => Promise.all(closers.map((close) => close())));

/** A server that answers as it is told, by the number of its request. */
async function peer(answer: Answer, port = 0, host = "127.0.0.1"): Promise<Peer> {
  const server = createServer((request, response) => {
    self.count += 1;
    const { count } = self;
    request.resume().on("end", () => answer(response, count, request));
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject).listen(port, host, () => resolve());
  });
  const { port: found } = server.address() as AddressInfo;
  const self: Peer = {
    port: found,
    uri: `http://${host}:${found}`,
    count: 0,
    onConnection: (listener) => server.on("connection", listener),
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
  closers.push(() => self.close());
  return self;
}

async function backendOf(options: Partial<RestBackendOptions> & Pick<RestBackendOptions, "uri">) {
  const backend = await createRestBackend({ log: callOf(describeTable).log, ...options });
  // By now a name has been looked up.
  await new Promise(setImmediate);
  closers.push(() => backend.close());
  return backend;
}

const well: Answer = (response) => sendJson(response, { location: "l" });
const unavailable: Answer = (response) => response.writeHead(503, { "retry-after": "0" }).end();
const reset: Answer = (response) => response.destroy();
const silent: Answer = () => {};

/** Answers the first requests in one way and the rest well. */
const first =
  (times: number, bad: Answer): Answer =>
  (response, count, request) =>
    (count <= times ? bad : well)(response, count, request);

async function outcome(backend: Backend, method: DescMethod, overrides: Partial<Call> = {}) {
  const call = callOf(method, overrides);
  const error = await callUnary({ backend } as never, method, {}, call).then(
    () => undefined,
    (thrown: unknown) => thrown as LanceError,
  );
  return { seen: error?.kind ?? "answer", decisions: call.decisions, error };
}

const KEY = { "idempotency-key": "k" };

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
  ["no write after a reset", dropTable, reset, {}, 1, "ServiceUnavailable"],
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

function half(response: ServerResponse): void {
  response.writeHead(200, { "content-length": 10 }).write("{}", () => response.destroy());
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

const failing = (name: ErrorName) => (error: unknown) => error instanceof LanceError && error.is(name);

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

  test("one that fails is left alone", async () => {
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
    const hedged = found.filter(({ decisions }) => decisions.length > 0);
    assert.deepEqual(
      hedged.map(({ seen, decisions }) => [seen, decisions]),
      [["answer", ["hedge", "hedge_won"]]],
    );
    await ended.promise;
  });
});

test("an upstream that is gone is not called until it may be back, and then once", async () => {
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
  let found = await outcome(backend, dropTable);
  while (found.seen !== "answer") found = await outcome(backend, dropTable);
  assert.deepEqual(found.decisions, ["circuit_half_open"]);
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

describe("more calls than connections", () => {
  const limits = { maxCalls: 1, maxWaiting: 1, resilience: { retries: 0 } };

  test("wait, and are refused at once past the bound of the queue", async () => {
    const held: ServerResponse[] = [];
    const arrived = Promise.withResolvers<void>();
    const server = await peer((response, _, { method }) => {
      if (method === "GET") return void sendJson(response, {});
      held.push(response);
      arrived.resolve();
    });
    const backend = await backendOf({ uri: server.uri, ...limits });
    const first = outcome(backend, describeTable);
    const second = outcome(backend, dropTable);
    const { seen, decisions, error } = await outcome(backend, describeTable);
    assert.deepEqual([seen, decisions, error?.headers["retry-after"]], ["Throttling", ["crowded"], "1"]);
    await arrived.promise;
    assert.equal(await backend.ready(), true, "a probe has a connection of its own");
    sendJson(held[0] as ServerResponse, {});
    assert.equal((await first).seen, "answer");
    while (held.length < 2) await new Promise(setImmediate);
    sendJson(held[1] as ServerResponse, {});
    assert.equal((await second).seen, "answer");
  });

  test("give their places back however they end", async () => {
    let answer: Answer = silent;
    const server = await peer((...args) => answer(...args));
    const backend = await backendOf({
      uri: server.uri,
      ...limits,
      timeLimits: { totalMs: 100 },
      resilience: { retries: 0, circuitFailures: 0 },
    });
    const waiting = new AbortController();
    const late = outcome(backend, describeTable);
    const never = outcome(backend, describeTable, { signal: waiting.signal });
    waiting.abort(new LanceError("DeadlineExceeded", "over"));
    assert.deepEqual([(await never).seen, (await late).error?.fault], ["DeadlineExceeded", "silent"]);
    for (answer of [reset, half, well]) await outcome(backend, describeTable);
    const controller = new AbortController();
    answer = silent;
    const left = outcome(backend, describeTable, { signal: controller.signal });
    controller.abort(new LanceError("Cancelled", "gone"));
    assert.equal((await left).seen, "Cancelled");
    answer = (response) => response.writeHead(200).write("ARROW1");
    for (let round = 0; round < 3; round += 1) {
      const handler = backend.operations.queryTable;
      for await (const _ of handler?.(create(queryTable.input), callOf(queryTable)) ?? []) break;
    }
    answer = well;
    assert.equal((await outcome(backend, describeTable)).seen, "answer");
  });
});

describe("the servers of one name", () => {
  test("have circuits of their own, and follow what is found", async () => {
    const one = await peer(well, 0, "127.0.0.1");
    const two = await peer(well, one.port, "127.0.0.2");
    const three = await peer(well, one.port, "127.0.0.3");
    let found = ["127.0.0.1", "127.0.0.2"];
    const resolveHost = async (): Promise<HostAddress[]> => found.map((address) => ({ address, family: 4 }));
    const backend = await backendOf({ uri: `http://catalog.test:${one.port}`, resolveHost });
    for (let call = 0; call < 4; call += 1) await outcome(backend, describeTable);
    assert.deepEqual([one.count, two.count], [2, 2]);
    found = ["127.0.0.1", "127.0.0.3"];
    two.close();
    while (three.count === 0) {
      assert.equal((await outcome(backend, describeTable)).seen, "answer");
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  });

  test("keep their name towards the server", async () => {
    const hosts: (string | undefined)[] = [];
    const server = await peer((response, _, { headers }) => {
      hosts.push(headers.host);
      sendJson(response, {});
    });
    const resolveHost = async () => [
      { address: "127.0.0.1", family: 4 },
      { address: "127.0.0.9", family: 4 },
    ];
    const backend = await backendOf({ uri: `http://catalog.test:${server.port}`, resolveHost });
    for (let call = 0; call < 2; call += 1) await outcome(backend, describeTable);
    assert.ok(
      hosts.length > 0 && hosts.every((host) => host === `catalog.test:${server.port}`),
      String(hosts),
    );
  });
});

test("connections are renewed, and no request is lost by it", async () => {
  let connections = 0;
  const server = await peer(well);
  server.onConnection(() => {
    connections += 1;
  });
  const backend = await backendOf({ uri: server.uri, connectionAgeMs: 20, resilience: { retries: 0 } });
  while (connections < 4) assert.equal((await outcome(backend, describeTable)).seen, "answer");
});
