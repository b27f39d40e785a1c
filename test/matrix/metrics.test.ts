import assert from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { pino } from "pino";
import { afterAll, beforeAll, describe, test } from "vitest";
import { ARROW_STREAM } from "../../src/arrow/ipc/ipc-forms.ts";
import { type Gateway, serveBackend } from "../../src/gateway/compose.ts";
import { HttpBodySchema } from "../../src/gen/google/api/httpbody_pb.ts";
import { InsertIntoTableResponseSchema } from "../../src/gen/lance/namespace/v1/data_pb.ts";
import { QueryTableResponseSchema } from "../../src/gen/lance/namespace/v1/query_pb.ts";
import { DescribeTableResponseSchema } from "../../src/gen/lance/namespace/v1/table_pb.ts";
import { LanceError } from "../../src/namespace/errors.ts";
import { createMetrics } from "../../src/observability/metrics/metrics.ts";
import { people, personStream } from "../support/arrow.ts";
import { sendHttp } from "../support/http.ts";
import { createProtocolClients } from "../support/protocols.ts";
import { ROUTED_CALLERS } from "../support/routed-callers.ts";
import { serveDatabases } from "../support/serve-databases.ts";
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

async function pageOf({ address }: Gateway, accept?: string): Promise<string> {
  const sent: Record<string, string> = accept === undefined ? {} : { accept };
  const request = { method: "GET", path: "/metrics", headers: sent };
  const { status, headers, bytes } = await sendHttp(address.port, request);
  assert.equal(status, 200);
  const text = bytes.toString();
  const type = text.endsWith("# EOF\n")
    ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
    : "text/plain; version=0.0.4; charset=utf-8";
  assert.equal(headers["content-type"], type);
  return text;
}

async function metricsOf(gateway: Gateway): Promise<Map<string, number>> {
  const lines = (await pageOf(gateway)).split("\n");
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
    routed = await serveDatabases(databases, routing, OPTIONS, { log, metrics: createMetrics() });
    single = await serveBackend(backend, OPTIONS, { log, metrics: createMetrics() });
  });
  afterAll(() => Promise.all([routed.close(), single.close()]));

  test("calls have equal labels on every protocol, and never a label that a client has made up", async () => {
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
      // The test calls Connect in two ways.
      const times = protocol === "connect" ? 2 : 1;
      for (const [code, database] of expected) {
        const series = `lance_gateway_calls_total{${labels},code="${code}",database="${database}"}`;
        assert.equal(metrics.get(series), times, series);
      }
      for (const [database, calls] of [
        ["red", 2 * times],
        ["", times],
      ] as const) {
        const ofDatabase = `${labels},database="${database}"`;
        assert.equal(metrics.get(`lance_gateway_call_seconds_count{${ofDatabase}}`), calls);
        assert.equal(metrics.get(`lance_gateway_call_seconds_bucket{${ofDatabase},le="+Inf"}`), calls);
      }
    }
    const decisions = 'lance_gateway_upstream_decisions_total{database="red",decision="retry"}';
    assert.equal(metrics.get(decisions), Object.keys(ROUTED_CALLERS).length);
    assert.equal(metrics.get("lance_gateway_calls_running"), 0);
    assert.doesNotMatch([...metrics.keys()].join("\n"), /black/);
    assert.ok((metrics.get("process_resident_memory_bytes") ?? 0) > 0);
  });

  test("the backend of each database has a name", async () => {
    for (const [gateway, database] of [
      [routed, "red"],
      [single, ""],
    ] as const) {
      const metrics = await metricsOf(gateway);
      assert.equal(metrics.get(`lance_gateway_backend_info{database="${database}",backend="fake"}`), 1);
    }
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

  test("the upkeep of tables is counted for each database that has any", async (t) => {
    const metrics = createMetrics();
    const gateway = await serveBackend(fakeBackend({}), OPTIONS, { log, metrics });
    t.onTestFinished(async () => void (await gateway.close()));
    metrics.upkeepFor("upstream");
    const upkeep = metrics.upkeepFor("red");
    upkeep.watch(() => 3);
    const run = { fragmentsRemoved: 16, versionsRemoved: 2, bytesRemoved: 100 };
    upkeep.done({ ...run, seconds: 0.2 });
    upkeep.done({ ...run, seconds: 40 });
    upkeep.missed("leased");
    const found = [...(await metricsOf(gateway))].filter(([series]) => series.includes("upkeep"));
    const counted = new Map(
      found.map(([series, value]) => [series.replace("lance_gateway_upkeep_", ""), value]),
    );
    const expected = {
      'runs_total{database="red",outcome="done"}': 2,
      'runs_total{database="red",outcome="leased"}': 1,
      'fragments_joined_total{database="red"}': 32,
      'versions_pruned_total{database="red"}': 4,
      'bytes_pruned_total{database="red"}': 200,
      'tables_waiting{database="red"}': 3,
      'seconds_count{database="red"}': 2,
      'seconds_sum{database="red"}': 40.2,
      'seconds_bucket{database="red",le="0.25"}': 1,
    };
    for (const [series, value] of Object.entries(expected)) assert.equal(counted.get(series), value, series);
    assert.doesNotMatch([...counted.keys()].join("\n"), /upstream/);
  });

  test("a client that prefers OpenMetrics gets it, with the trace of a call on every protocol", async () => {
    const { port } = routed.address;
    for (const [index, [name, call]] of Object.entries(ROUTED_CALLERS).entries()) {
      const traceId = String(index + 1).padStart(32, "a");
      for (const [parent, expected] of [
        [`00-${traceId}-00f067aa0ba902b7-00`, false],
        [`00-${"0".repeat(32)}-00f067aa0ba902b7-01`, false],
        ["nonsense", false],
        [`00-${traceId}-00f067aa0ba902b7-01`, true],
      ] as const) {
        await call(port, { headers: { "x-service-database": "red", traceparent: parent } });
        const text = await pageOf(routed, "application/openmetrics-text;version=1.0.0,text/plain;q=0.5");
        const exemplar = new RegExp(
          `^lance_gateway_call_seconds_bucket\\{operation="DescribeTable",.*\\} \\d+ # \\{trace_id="${traceId}"\\} [0-9.e-]+ \\d+\\.?\\d*$`,
          "m",
        );
        assert.equal(exemplar.test(text), expected, `${name}: ${parent}`);
      }
    }
  });

  test("both formats have every metric under its name, however often they alternate", async () => {
    const counters = (text: string) => text.match(/^\w+_total(?=[{ ])/gm)?.toSorted();
    const plain = await pageOf(single);
    for (const accept of ["text/plain", "*/*", "application/openmetrics-text;q=0.1, text/plain;q=0.2"]) {
      const open = await pageOf(single, "application/openmetrics-text");
      assert.match(open, /^# TYPE lance_gateway_calls counter$/m);
      assert.match(open, /\n# EOF\n$/);
      assert.deepEqual(counters(open), counters(plain));
      const again = await pageOf(single, accept);
      assert.match(again, /^# TYPE lance_gateway_calls_total counter$/m);
      assert.deepEqual(counters(again), counters(plain));
      assert.doesNotMatch(again, /trace_id/);
    }
  });

  test("without metrics the path is answered like any unknown one", async (t) => {
    const bare = await serveBackend(fakeBackend({}), OPTIONS, { log });
    t.onTestFinished(async () => void (await bare.close()));
    const { status } = await sendHttp(bare.address.port, { method: "GET", path: "/metrics" });
    assert.equal(status, 404);
  });
});
