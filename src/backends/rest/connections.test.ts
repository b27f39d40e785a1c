import assert from "node:assert/strict";
import type { ServerResponse } from "node:http";
import { create } from "@bufbuild/protobuf";
import { describe, test } from "vitest";
import { letLookupsPass } from "../../../test/fixtures/upstreams/lookup.ts";
import {
  type Answer,
  backendOf,
  describeTable,
  dropTable,
  half,
  outcome,
  peer,
  queryTable,
  reset,
  silent,
  well,
} from "../../../test/fixtures/upstreams/peer.ts";
import { callOf, sendJson } from "../../../test/fixtures/upstreams/rest.ts";
import { LanceError } from "../../namespace/errors.ts";
import type { HostAddress } from "../resilience/followed-hosts.ts";

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
  test("have circuits of their own, and follow what is found", async (t) => {
    const one = await peer(well, 0, "127.0.0.1");
    const two = await peer(well, one.port, "127.0.0.2");
    const three = await peer(well, one.port, "127.0.0.3");
    let found = ["127.0.0.1", "127.0.0.2"];
    const resolveHost = async (): Promise<HostAddress[]> => found.map((address) => ({ address, family: 4 }));
    const backend = await backendOf({ uri: `http://catalog.test:${one.port}`, resolveHost });
    for (let call = 0; call < 4; call += 1) await outcome(backend, describeTable);
    assert.deepEqual([one.count, two.count], [2, 2]);
    found = ["127.0.0.1", "127.0.0.3"];
    letLookupsPass(t);
    two.close();
    while (three.count === 0) {
      assert.equal((await outcome(backend, describeTable)).seen, "answer");
      // Between calls, the backend has time to look the name up.
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
