import assert from "node:assert/strict";
import { once } from "node:events";
import { connect as connectHttp2 } from "node:http2";
import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { pino } from "pino";
import { afterAll, beforeAll, describe, test } from "vitest";
import { type Gateway, serveBackend } from "../../src/gateway/compose.ts";
import { createMetrics } from "../../src/observability/metrics/metrics.ts";
import { sendHttp } from "../support/http.ts";
import { fakeBackend } from "../support/server.ts";

const MIB = 2 ** 20;
const OPTIONS = { host: "127.0.0.1", port: 0, maxMessageBytes: 1024, maxUploadBytes: MIB, drainSeconds: 0 };
const SERVICE = "/lance.namespace.v1.LanceNamespaceService";
const JSON_TYPE = { "content-type": "application/json" };
const GRPC = { "content-type": "application/grpc", te: "trailers" };
const WEB = { "content-type": "application/grpc-web+proto" };
/** A secret that a client may have sent in a wrong place. */
const SECRET = "marked-secret";

interface Refused {
  readonly send: (port: number) => Promise<unknown>;
  readonly protocol: string;
  readonly code: string;
  /** The path in the log. */
  readonly path?: string;
}

const http =
  (path: string, headers: Readonly<Record<string, string>> = {}, body: string | Uint8Array = "") =>
  (port: number) =>
    sendHttp(port, { path, headers, body });

/** Sends bytes and waits until the server has closed the connection. */
const raw = (text: string | Uint8Array) => async (port: number) => {
  const socket = connect(port, "127.0.0.1").on("error", () => {});
  socket.write(text);
  socket.resume();
  await once(socket, "close");
};

const grpc =
  (path: string, headers: Readonly<Record<string, string>> = {}, body: Uint8Array = Buffer.alloc(5)) =>
  async (port: number) => {
    const session = connectHttp2(`http://127.0.0.1:${port}`);
    const stream = session.request({ ":method": "POST", ":path": path, ...GRPC, ...headers });
    stream.on("error", () => {});
    stream.end(body);
    stream.resume();
    await once(stream, "close");
    session.destroy();
  };

const frame = (text: string) =>
  Buffer.concat([Buffer.from([0, 0, 0, 0, text.length]), Buffer.from(text, "latin1")]);

const CASES: Readonly<Record<string, Refused>> = {
  "an unknown path": {
    send: http(`/v1/table/${SECRET}/${SECRET}`),
    protocol: "rest",
    code: "RouteNotFound",
    path: "/v1/table/*/*",
  },
  "another method": {
    send: (port) => sendHttp(port, { method: "PUT", path: "/v1/table/t/drop" }),
    protocol: "rest",
    code: "MethodNotAllowed",
  },
  "a body that is not JSON": {
    send: http("/v1/table/t/describe", JSON_TYPE, `{${SECRET}`),
    protocol: "rest",
    code: "InvalidInput",
    path: "/v1/table/*/describe",
  },
  "a field of another type": {
    send: http("/v1/table/t/describe", JSON_TYPE, `{"version":"${SECRET}"}`),
    protocol: "rest",
    code: "InvalidInput",
  },
  "another media type": {
    send: http("/v1/table/t/describe", { "content-type": `text/${SECRET}` }, "{}"),
    protocol: "rest",
    code: "UnsupportedMediaType",
  },
  "too large a body": {
    send: http("/v1/table/t/describe", JSON_TYPE, "x".repeat(2000)),
    protocol: "rest",
    code: "PayloadTooLarge",
  },
  "a page of another origin": {
    send: http("/v1/table/t/drop", { origin: `https://${SECRET}` }),
    protocol: "http",
    code: "PermissionDenied",
    path: "/v1/table/*/drop",
  },
  "an unknown method of Connect": {
    send: http(`${SERVICE}/${SECRET}`, JSON_TYPE, "{}"),
    protocol: "rest",
    code: "RouteNotFound",
    path: `${SERVICE}/*`,
  },
  "a body of Connect that is not JSON": {
    send: http(`${SERVICE}/DropTable`, JSON_TYPE, `{${SECRET}`),
    protocol: "connect",
    code: "InvalidInput",
    path: `${SERVICE}/DropTable`,
  },
  "another media type of Connect": {
    send: http(`${SERVICE}/DropTable`, { "content-type": "application/xml" }, "x"),
    protocol: "connect",
    code: "UnsupportedMediaType",
  },
  "GET of a method with effects": {
    send: (port) => sendHttp(port, { method: "GET", path: `${SERVICE}/DropTable` }),
    protocol: "connect",
    code: "MethodNotAllowed",
  },
  "a message of gRPC-Web that is none": {
    send: http(`${SERVICE}/DropTable`, WEB, frame(`\xff${SECRET}`)),
    protocol: "grpc-web",
    code: "InvalidInput",
  },
  "an unknown method of gRPC": {
    send: grpc(`/${SECRET}.Service/Method`),
    protocol: "grpc",
    code: "RouteNotFound",
    path: "/*/*",
  },
  "another media type of gRPC": {
    send: grpc(`${SERVICE}/DropTable`, { "content-type": "application/grpc+json" }),
    protocol: "grpc",
    code: "UnsupportedMediaType",
  },
  "another method of HTTP for gRPC": {
    send: grpc(`${SERVICE}/DropTable`, { ":method": "PUT" }),
    protocol: "grpc",
    code: "MethodNotAllowed",
  },
  "a message of gRPC that is none": {
    send: grpc(`${SERVICE}/DropTable`, {}, frame(`\xff\xff${SECRET}`)),
    protocol: "grpc",
    code: "InvalidInput",
    path: `${SERVICE}/DropTable`,
  },
  "half a message of gRPC": {
    send: grpc(`${SERVICE}/DropTable`, {}, Buffer.from([0, 0, 0, 0, 9, 1])),
    protocol: "grpc",
    code: "Internal",
  },
  "a deadline of gRPC that is none": {
    send: grpc(`${SERVICE}/DropTable`, { "grpc-timeout": SECRET }),
    protocol: "grpc",
    code: "InvalidInput",
  },
  "an upload of gRPC without a message": {
    send: grpc(`${SERVICE}/CreateTable`, {}, new Uint8Array(0)),
    protocol: "grpc",
    code: "InvalidInput",
  },
  "bytes that are no HTTP": {
    send: raw(`SSH-2.0-${SECRET}\r\n\r\n`),
    protocol: "http",
    code: "InvalidInput",
  },
  "TLS where there is none": {
    send: raw(Buffer.from("16030100a5010000a1030300000000", "hex")),
    protocol: "http",
    code: "InvalidInput",
  },
  "a header without an end": {
    send: raw(`GET / HTTP/1.1\r\nhost: localhost\r\nx: ${SECRET.repeat(2000)}\r\n\r\n`),
    protocol: "http",
    code: "PayloadTooLarge",
  },
  "two lengths of one body": {
    send: raw(
      `POST / HTTP/1.1\r\nhost: localhost\r\nauthorization: ${SECRET}\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n`,
    ),
    protocol: "http",
    code: "InvalidInput",
  },
  "a tunnel": {
    send: raw(`CONNECT ${SECRET}:1 HTTP/1.1\r\nhost: ${SECRET}\r\n\r\n`),
    protocol: "http",
    code: "MethodNotAllowed",
  },
  "an expectation that is not known": {
    send: raw(`POST /v1/table HTTP/1.1\r\nhost: localhost\r\nexpect: ${SECRET}\r\ncontent-length: 0\r\n\r\n`),
    protocol: "http",
    code: "InvalidInput",
  },
  "what begins like HTTP/2": { send: raw("PRI * HTTP/1.1\r\n\r\n"), protocol: "http", code: "InvalidInput" },
  "frames that are no HTTP/2": {
    send: raw(`PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n${SECRET.repeat(20)}`),
    protocol: "http",
    code: "InvalidInput",
  },
};

describe("requests that never become a call", () => {
  let gateway: Gateway;
  const lines: Record<string, unknown>[] = [];
  beforeAll(async () => {
    const log = pino({ level: "debug" }, { write: (line: string) => lines.push(JSON.parse(line)) });
    gateway = await serveBackend(fakeBackend({}), OPTIONS, { log, metrics: createMetrics() });
  });
  afterAll(() => gateway.close());

  async function counted(): Promise<Map<string, number>> {
    const { bytes } = await sendHttp(gateway.address.port, { method: "GET", path: "/metrics" });
    const found = bytes
      .toString()
      .matchAll(/^lance_gateway_(?:requests_refused|calls)_total\{(.*)\} (\d+)$/gm);
    return new Map([...found].map(([, labels = "", value]) => [labels, Number(value)]));
  }

  for (const [what, { send, protocol, code, path }] of Object.entries(CASES)) {
    test(`are counted and logged once: ${what}`, async () => {
      const earlier = await counted();
      lines.length = 0;
      await send(gateway.address.port);
      const label = `protocol="${protocol}",code="${code}"`;
      const expected = new Map([...earlier, [label, (earlier.get(label) ?? 0) + 1]]);
      for (let tries = 0; tries < 100 && (await counted()).get(label) !== expected.get(label); tries++)
        await sleep(10);
      assert.deepEqual(await counted(), expected);
      const logged = lines.filter(({ msg }) => msg === "request refused");
      assert.equal(logged.length, 1, JSON.stringify(lines));
      assert.deepEqual([logged[0]?.["protocol"], logged[0]?.["code"]], [protocol, code]);
      if (path !== undefined) assert.equal(logged[0]?.["path"], path);
      assert.doesNotMatch(JSON.stringify(lines), new RegExp(SECRET));
    });
  }

  test("do not count as calls, which are counted as before", async () => {
    const earlier = await counted();
    lines.length = 0;
    await http("/v1/table/t/describe", JSON_TYPE, "{}")(gateway.address.port);
    await grpc(`${SERVICE}/DescribeTable`)(gateway.address.port);
    const added = [...(await counted())].filter(([label, value]) => value !== earlier.get(label));
    assert.equal(added.length, 2);
    for (const [label] of added) assert.match(label, /operation="DescribeTable".*code="Unsupported"/);
    assert.deepEqual(
      lines.filter(({ msg }) => msg === "request refused"),
      [],
    );
  });
});
