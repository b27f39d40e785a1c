import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { create } from "@bufbuild/protobuf";
import { pino } from "pino";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ARROW_STREAM } from "../../src/arrow/ipc/ipc-forms.ts";
import { type Gateway, serveBackend } from "../../src/gateway/compose.ts";
import { HttpBodySchema } from "../../src/gen/google/api/httpbody_pb.ts";
import { InsertIntoTableResponseSchema } from "../../src/gen/lance/namespace/v1/data_pb.ts";
import { QueryTableResponseSchema } from "../../src/gen/lance/namespace/v1/query_pb.ts";
import { DescribeTableResponseSchema } from "../../src/gen/lance/namespace/v1/table_pb.ts";
import { LanceError } from "../../src/namespace/errors.ts";
import { accessLine } from "../../src/pipeline/records/access-entry.ts";
import { people, personStream } from "../support/arrow.ts";
import { type RawRequest, sendHttp } from "../support/http.ts";
import { createProtocolClients } from "../support/protocols.ts";
import { ROUTED_CALLERS } from "../support/routed-callers.ts";
import { fakeBackend } from "../support/server.ts";

const LIMITS = { maxUploadBytes: 2 ** 20 };
const OPTIONS = { ...LIMITS, host: "127.0.0.1", port: 0, maxMessageBytes: 2 ** 20, drainSeconds: 0 };
const CONNECT = { "connect-protocol-version": "1" };
const RESULT = personStream(people(20));

const backend = fakeBackend({
  async describeTable(_, { id }) {
    if (id[0] === "none") throw new LanceError("TableNotFound", "table none does not exist");
    return create(DescribeTableResponseSchema, { table: "t" });
  },
  async insertIntoTable(_, data) {
    for await (const _piece of data);
    return create(InsertIntoTableResponseSchema);
  },
  async *queryTable() {
    const body = create(HttpBodySchema, { contentType: ARROW_STREAM, data: new Uint8Array(RESULT) });
    yield create(QueryTableResponseSchema, { data: body });
  },
});

type Line = Readonly<Record<string, unknown>>;

describe("the access log", () => {
  const lines: Line[] = [];
  let gateway: Gateway;
  beforeAll(async () => {
    gateway = await serveBackend(
      backend,
      { ...OPTIONS, trustedProxies: ["127.0.0.0/8"] },
      {
        log: pino({ level: "silent" }),
        access: {
          noteBy: (mask) => (entry) => {
            // Clients of HTTP/2 may break off their sessions, at any time.
            if (entry.refusal?.fault === "ERR_HTTP2_SESSION_ERROR") return;
            lines.push(JSON.parse(accessLine(entry, mask)));
          },
          close: async () => {},
        },
      },
    );
  });
  afterAll(async () => void (await gateway.close()));

  /** Returns the lines that some requests give, once there are as many as expected. */
  async function linesOf(count: number, send: () => Promise<unknown>): Promise<Line[]> {
    lines.length = 0;
    await send();
    await expect.poll(() => lines.length).toBe(count);
    return [...lines];
  }

  test("a call has one line on every protocol, with its outcome, its client and its trace", async () => {
    const traceId = "c".repeat(32);
    const headers = { "x-forwarded-for": "203.0.113.9", traceparent: `00-${traceId}-${"d".repeat(16)}-01` };
    for (const [name, call] of Object.entries(ROUTED_CALLERS)) {
      for (const [id, code] of [
        ["t", "OK"],
        ["none", "TableNotFound"],
      ] as const) {
        const [line] = await linesOf(1, () => call(gateway.address.port, { headers, id: [id] }));
        const expected = { msg: "request", level: 30, operation: "DescribeTable", client: "203.0.113.9" };
        expect(line, name).toMatchObject({ ...expected, id, code, traceId, status: expect.any(Number) });
        // An error of gRPC has no body.
        if (code === "OK") expect(line?.["bytesOut"], name).toBeGreaterThan(0);
        expect(line?.["ms"], name).toBeGreaterThan(0);
      }
    }
  });

  test("the bytes of bodies are counted in both directions", async () => {
    const clients = createProtocolClients(gateway.address.port);
    const body = RESULT;
    for (const [name, { client }] of Object.entries(clients)) {
      const [sent] = await linesOf(1, () => client.insertIntoTable({ id: ["t"] }, body));
      expect(sent?.["bytesIn"], name).toBeGreaterThanOrEqual(body.length);
      const [received] = await linesOf(1, () => client.queryTable({ id: ["t"] }));
      expect(received?.["bytesOut"], name).toBeGreaterThanOrEqual(RESULT.length);
    }
    const path = "/v1/table/t/insert";
    const request = { path, headers: { "content-type": ARROW_STREAM }, body };
    const [exact] = await linesOf(1, () => sendHttp(gateway.address.port, request));
    expect(exact).toMatchObject({ method: "POST", path, http: "1.1", status: 200, bytesIn: body.length });
    for (const { close } of Object.values(clients)) close();
  });

  test("an answer to HEAD counts no bytes, and the same answer to GET all of its body", async () => {
    for (const [method, bytesOut] of [
      ["GET", 3],
      ["HEAD", 0],
    ] as const) {
      const [line] = await linesOf(1, () => sendHttp(gateway.address.port, { method, path: "/healthz" }));
      expect(line, method).toMatchObject({ method, status: 200, bytesIn: 0, bytesOut });
    }
  });

  test("a refused request has one line that says why, without what it sent", async () => {
    const json = { "content-type": "application/json" };
    const cases: readonly (readonly [RawRequest, Line])[] = [
      [{ path: "/v1/unknown/thing?key=hidden" }, { code: "RouteNotFound", status: 404, path: "/v1/*/*" }],
      [
        { path: "/v1/table/hidden/describe", headers: json, body: "hidden" },
        { code: "InvalidInput", status: 400, path: "/v1/table/*/describe" },
      ],
      [
        { path: "/v1/table/t/describe", headers: { "sec-fetch-site": "cross-site" } },
        { code: "PermissionDenied", status: 403, protocol: "http" },
      ],
      [
        {
          path: "/lance.namespace.v1.LanceNamespaceService/Nothing",
          headers: { ...json, ...CONNECT },
          body: "{}",
        },
        { code: "RouteNotFound", protocol: "connect", status: 404 },
      ],
    ];
    for (const [request, expected] of cases) {
      const [line] = await linesOf(1, () => sendHttp(gateway.address.port, request));
      expect(line, request.path).toMatchObject({ client: "127.0.0.1", ...expected });
      expect(JSON.stringify(line)).not.toContain("hidden");
    }
  });

  test("pages have a line with their status alone", async () => {
    const [line] = await linesOf(1, () =>
      sendHttp(gateway.address.port, {
        method: "GET",
        path: "/healthz",
        headers: { "user-agent": "probe/1" },
      }),
    );
    expect(line).toMatchObject({ path: "/healthz", status: 200, bytesOut: 3, userAgent: "probe/1" });
    assert.ok(line !== undefined && !("code" in line));
  });

  test("bytes that are not HTTP have a line, too", async () => {
    for (const [bytes, fault] of [
      ["NONSENSE\r\n\r\n", "HPE_INVALID_METHOD"],
      ["\x16\x03\x01\x02\x00\x01", "tls"],
    ] as const) {
      const [line] = await linesOf(1, async () => {
        const socket = connect(gateway.address.port, "127.0.0.1", () => socket.write(bytes, "latin1"));
        socket.on("error", () => {}).resume();
        await once(socket, "close");
      });
      expect(line).toMatchObject({ code: "InvalidInput", fault, client: "127.0.0.1", protocol: "http" });
    }
  });
});
