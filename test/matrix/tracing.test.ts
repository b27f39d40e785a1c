import assert from "node:assert/strict";
import * as api from "@opentelemetry/api";
import { InMemorySpanExporter, SimpleSpanProcessor, TracerProvider } from "@opentelemetry/sdk-trace";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createTracing } from "../../src/gateway/tracing/open-tracing.ts";
import { setTracing } from "../../src/runtime/tracing.ts";
import { people, personStream } from "../support/arrow.ts";
import { CallError } from "../support/client.ts";
import { PROTOCOLS } from "../support/protocols.ts";
import { type DirectoryServer, startDirectoryServer } from "../support/server.ts";

const TRACE = "a".repeat(32);
const PARENT = "b".repeat(16);

describe("the trace of a call", () => {
  const exporter = new InMemorySpanExporter();
  let server: DirectoryServer;
  beforeAll(async () => {
    const provider = new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter })] });
    const tracing = createTracing(api, provider.getTracer("test"));
    setTracing(tracing);
    server = await startDirectoryServer({}, { tracing: { tracing, close: () => provider.shutdown() } });
  });
  afterAll(async () => {
    setTracing(undefined);
    await server.close();
  });

  /** Returns the spans of some calls, once the span of the last one has ended. */
  async function spansOf(calls: number, send: () => Promise<unknown>) {
    exporter.reset();
    await send();
    const servers = () => exporter.getFinishedSpans().filter(({ kind }) => kind === api.SpanKind.SERVER);
    await expect.poll(() => servers().length).toBe(calls);
    return exporter.getFinishedSpans();
  }

  for (const [protocol, open] of Object.entries(PROTOCOLS)) {
    test(`continues the client's on ${protocol}, down to the commit and the engine`, async (t) => {
      const { client, close } = open(server.port, {
        traceparent: `00-${TRACE}-${PARENT}-01`,
        tracestate: "vendor=1",
      });
      t.onTestFinished(close);
      const id = [protocol.replaceAll(/\W/g, "-").toLowerCase()];
      const spans = await spansOf(2, async () => {
        await client.createTable({ id }, personStream(people(3)));
        await client.queryTable({ id, k: 1n });
      });
      const named = Map.groupBy(spans, ({ name }) => name);
      const only = (name: string) => named.get(name) ?? assert.fail(`no span ${name}`);
      for (const span of spans) assert.equal(span.spanContext().traceId, TRACE, span.name);
      for (const operation of ["CreateTable", "QueryTable"]) {
        const [call] = only(`lance.namespace.v1.LanceNamespaceService/${operation}`);
        assert.equal(call?.parentSpanContext?.spanId, PARENT);
        assert.equal(call?.spanContext().traceState?.get("vendor"), "1");
        expect(call?.attributes).toMatchObject({ "lance.code": "OK", "rpc.method": operation });
        const [backend] = only("backend").filter(
          ({ parentSpanContext }) => parentSpanContext?.spanId === call?.spanContext().spanId,
        );
        assert.equal(backend?.attributes["lance.object"], id[0]);
        assert.equal(backend?.attributes["lance.backend"], "dir");
      }
      const backends = only("backend").map((span) => span.spanContext().spanId);
      for (const name of ["catalog commit", "engine open"])
        assert.ok(
          only(name).some(({ parentSpanContext }) => backends.includes(parentSpanContext?.spanId ?? "")),
          name,
        );
    });
  }

  test("begins with the call if the client has none, and tells errors of the client from faults", async (t) => {
    const { client, close } = PROTOCOLS["REST"]?.(server.port) ?? assert.fail();
    t.onTestFinished(close);
    const [call] = (
      await spansOf(1, () => assert.rejects(client.describeTable({ id: ["none"] }), CallError))
    ).filter(({ kind }) => kind === api.SpanKind.SERVER);
    assert.equal(call?.parentSpanContext, undefined);
    expect(call?.attributes).toMatchObject({ "lance.code": "TableNotFound", "error.type": "TableNotFound" });
    assert.equal(call?.status.code, api.SpanStatusCode.UNSET);
  });
});
