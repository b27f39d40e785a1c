import assert from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { pino } from "pino";
import { afterAll, beforeAll, describe, test } from "vitest";
import { ARROW_STREAM } from "../../src/arrow/ipc-forms.ts";
import { type Gateway, serveBackend, serveDatabases } from "../../src/gateway/compose.ts";
import { HttpBodySchema } from "../../src/gen/google/api/httpbody_pb.ts";
import { InsertIntoTableResponseSchema } from "../../src/gen/lance/namespace/v1/data_pb.ts";
import { QueryTableResponseSchema } from "../../src/gen/lance/namespace/v1/query_pb.ts";
import { DescribeTableResponseSchema } from "../../src/gen/lance/namespace/v1/table_pb.ts";
import { createMetrics } from "../../src/metrics/metrics.ts";
import { LanceError } from "../../src/namespace/errors.ts";
import { people, personStream } from "../support/arrow.ts";
import { sendHttp } from "../support/http.ts";
import { createProtocolClients } from "../support/protocols.ts";
import { ROUTED_CALLERS } from "../support/routed-callers.ts";
import { fakeBackend } from "../support/server.ts";

const LIMITS = { maxUploadBytes: 2 ** 20 };
const OPTIONS = { ...LIMITS, host: "127.0.0.1", port: 0, maxMessageBytes: 2 ** 20, drainSeconds: 0 };
const PROTOCOLS = ["grpc", "grpc-web", "connect", "rest"];

const backend = fakeBackend({
  async describeTable(_, call) {
    if (call.id[0] === "none") throw new LanceError("TableNotFound", "table none does not exist");
    call.note("retry");
    return create(DescribeTableResponseSchema, { table: "t" });
  },
  async insertIntoTable(_, data) {
    for await (const _piece of data);
    return create(InsertIntoTableResponseSchema);
  },
  async *queryTable() {
    for (const size of [10, 20]) {
      const body = create(HttpBodySchema, { contentType: ARROW_STREAM, data: new Uint8Array(size) });
      yield create(QueryTableResponseSchema, { data: body });
    }
  },
});

async function metricsOf({ address }: Gateway): Promise<Map<string, number>> {
  const { status, headers, bytes } = await sendHttp(address.port, { method: "GET", path: "/metrics" });
  assert.equal(status, 200);
  assert.equal(headers["content-type"], "text/plain; version=0.0.4; charset=utf-8");
  const lines = bytes.toString().split("\n");
  return new Map(
    lines.flatMap((line) => {
      const [, series, value] = /^(\w+(?:\{.*\})?) (\S+)$/.exec(line) ?? [];
      return series === undefined ? [] : [[series, Number(value)]];
    }),
  );
}

describe("metrics", () => {
  const log = pino({ level: "silent" });
  let routed: Gateway;
  let single: Gateway;
  beforeAll(async () => {
    const databases = new Map([["red", { backend, limits: LIMITS }]]);
    const routing = { routes: [{ by: "header" }] as const, pathPrefix: undefined, fallback: undefined };
    routed = await serveDatabases(databases, routing, OPTIONS, log, createMetrics());
    single = await serveBackend(backend, OPTIONS, log, createMetrics());
  });
  afterAll(() => Promise.all([routed.close(), single.close()]));

  test("calls have the same labels on every protocol, and none that a client has made up", async () => {
    const { port } = routed.address;
    for (const call of Object.values(ROUTED_CALLERS)) {
      await call(port, { headers: { "x-service-database": "red" } });
      await call(port, { headers: { "x-service-database": "red" }, id: ["none"] });
      await call(port, { headers: { "x-service-database": "black" } });
    }
    const metrics = await metricsOf(routed);
    const expected = [
      ["OK", "red"],
      ["TableNotFound", "red"],
      ["NamespaceNotFound", ""],
    ];
    for (const protocol of PROTOCOLS) {
      const labels = `operation="DescribeTable",protocol="${protocol}"`;
      // Connect is called in two ways.
      const times = protocol === "connect" ? 2 : 1;
      for (const [code, database] of expected) {
        const series = `lance_gateway_calls_total{${labels},code="${code}",database="${database}"}`;
        assert.equal(metrics.get(series), times, series);
      }
      assert.equal(metrics.get(`lance_gateway_call_seconds_count{${labels}}`), 3 * times);
      assert.equal(metrics.get(`lance_gateway_call_seconds_bucket{${labels},le="+Inf"}`), 3 * times);
    }
    const decisions = 'lance_gateway_upstream_decisions_total{database="red",decision="retry"}';
    assert.equal(metrics.get(decisions), Object.keys(ROUTED_CALLERS).length);
    assert.equal(metrics.get("lance_gateway_calls_running"), 0);
    assert.doesNotMatch([...metrics.keys()].join("\n"), /black/);
    assert.ok((metrics.get("process_resident_memory_bytes") ?? 0) > 0);
  });

  test("bytes of Arrow bodies are counted in both directions", async () => {
    const byProtocol = createProtocolClients(single.address.port);
    const clients = Object.values(byProtocol);
    const body = personStream(people(1));
    for (const { client } of clients) await client.insertIntoTable({ id: ["t"] }, body);
    await byProtocol["gRPC"]?.client.queryTable({ id: ["t"] });
    const metrics = await metricsOf(single);
    for (const { close } of clients) close();
    const series = (operation: string, direction: string) =>
      metrics.get(`lance_gateway_arrow_bytes_total{operation="${operation}",direction="${direction}"}`);
    assert.equal(series("InsertIntoTable", "received"), body.length * clients.length);
    assert.equal(series("QueryTable", "sent"), 30);
  });

  test("without metrics the path is no other than any unknown one", async (t) => {
    const bare = await serveBackend(fakeBackend({}), OPTIONS, log);
    t.onTestFinished(async () => void (await bare.close()));
    const { status } = await sendHttp(bare.address.port, { method: "GET", path: "/metrics" });
    assert.equal(status, 404);
  });
});
