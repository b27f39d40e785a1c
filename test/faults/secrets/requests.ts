import { connect as connectHttp2 } from "node:http2";
import { connect } from "node:net";
import type { Duplex } from "node:stream";
import { sendHttp } from "../../support/http.ts";

export const SERVICE = "/lance.namespace.v1.LanceNamespaceService";
export const JSON_TYPE = { "content-type": "application/json" };

/** Returns a unique credential for each place, so that a failure shows which of them leaked. */
export const mark = (place: string) => `mArKeD-${place}-0123456789`;
export const MARK = /mArKeD-([\w-]+?)-0123456789/g;

/** Headers that may carry a credential; `x-request-id` is in the log on purpose. */
export const HEADERS: Readonly<Record<string, string>> = Object.fromEntries([
  ["authorization", `Bearer ${mark("authorization")}`],
  ...[
    "x-api-key",
    "cookie",
    "x-mine",
    "x-lance-session",
    "x-amz-security-token",
    "idempotency-key",
    "forwarded",
  ].map((name) => [name, mark(name)]),
]);

export const BODY = {
  identity: { api_key: mark("identity-key"), auth_token: mark("identity-token") },
  context: {
    "header.x-lance-c": mark("context-header"),
    "header.authorization": mark("context-auth"),
    n: mark("context"),
  },
  properties: { password: mark("properties") },
  storage_options: { aws_secret_access_key: mark("storage-options") },
  predicate: `name = '${mark("predicate")}'`,
  unknown: mark("unknown-field"),
};

export const ignoring = (promise: Promise<unknown>) => promise.catch(() => undefined);

export async function raw(port: number, ...pieces: readonly string[]): Promise<void> {
  const socket = connect(port, "127.0.0.1").on("error", () => {});
  for (const piece of pieces) socket.write(piece);
  socket.end();
  socket.resume();
  await ended(socket);
}

/** Waits for the end of a connection or a stream, which the server may cut off. */
export function ended(stream: Duplex): Promise<void> {
  return new Promise((resolve) => stream.once("close", () => resolve()));
}

export async function grpc(
  port: number,
  path: string,
  headers: Readonly<Record<string, string>>,
  body: Uint8Array,
) {
  const session = connectHttp2(`http://127.0.0.1:${port}`).on("error", () => {});
  const stream = session
    .request({
      ":method": "POST",
      ":path": path,
      "content-type": "application/grpc",
      te: "trailers",
      ...headers,
    })
    .on("error", () => {});
  stream.end(body);
  stream.resume();
  await ended(stream);
  session.destroy();
}

/** Sends a secret in every place that a client controls, in requests that are served, refused or malformed. */
export async function sendEverything(port: number): Promise<void> {
  const body = JSON.stringify(BODY);
  const paths = [
    "/v1/table/t/describe",
    "/v1/table/t/count_rows",
    "/v1/table/t/declare",
    "/v1/namespace/n/create",
    "/v1/table/t/drop",
    `/v1/table/t/${mark("path")}`,
    `/${mark("path")}`,
    `/v1/table/t/describe?token=${mark("query")}&branch=%zz${mark("query-escape")}`,
    `/v1/table/t/count_rows?version=${mark("query-value")}`,
    `${SERVICE}/DescribeTable`,
    `${SERVICE}/${mark("method")}`,
  ];
  for (const path of paths) {
    await ignoring(sendHttp(port, { path, headers: { ...HEADERS, ...JSON_TYPE }, body }));
    await ignoring(
      sendHttp(port, { path, headers: { ...HEADERS, ...JSON_TYPE }, body: `{"version":"${mark("type")}"}` }),
    );
    await ignoring(
      sendHttp(port, { path, headers: { ...HEADERS, ...JSON_TYPE }, body: `{"a":${mark("json")}` }),
    );
    await ignoring(sendHttp(port, { path, headers: { ...HEADERS, "content-type": mark("type") }, body }));
    await ignoring(
      sendHttp(port, { path, headers: { ...HEADERS, origin: `https://${mark("origin")}` }, body }),
    );
    await ignoring(
      sendHttp(port, { path, headers: { ...HEADERS, "x-request-timeout-ms": mark("timeout") }, body }),
    );
  }
  const arrow = { ...HEADERS, "content-type": "application/vnd.apache.arrow.stream" };
  await ignoring(sendHttp(port, { path: "/v1/table/t/create", headers: arrow, body: mark("arrow") }));
  await ignoring(
    sendHttp(port, {
      path: "/v1/table/t/create",
      headers: { ...arrow, "content-encoding": "gzip" },
      body: mark("gzip"),
    }),
  );

  const head = `POST /v1/table/t/describe HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${mark("raw-header")}\r\n`;
  await raw(port, `${mark("raw-method")} / HTTP/1.1\r\n\r\n`);
  await raw(port, `${head}${mark("raw-line")}\r\n\r\n`);
  await raw(port, `${head}content-length: 1\r\ncontent-length: 2\r\n\r\n`);
  await raw(port, `${head}content-length: ${mark("raw-length")}\r\n\r\n`);
  await raw(port, `${head}transfer-encoding: chunked\r\n\r\n${mark("raw-chunk")}\r\n`);
  await raw(port, `${head}x: \x01${mark("raw-control")}\r\n\r\n`);
  await raw(port, `${head}x: ${mark("raw-long").repeat(2000)}\r\n\r\n`);
  await raw(port, `GET http://user:${mark("userinfo")}@localhost/v1/x HTTP/1.1\r\nhost: localhost\r\n\r\n`);
  await raw(port, `GET /v1/x HTTP/1.1\r\nhost: ${mark("host")}.example\r\n\r\n`);
  await raw(port, `PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n${mark("frames")}`);
  await raw(port, head, mark("raw-cut"));

  const names = Buffer.concat([
    Buffer.from("\x0a\x01t"),
    Buffer.from([0x2a, 40, 0x0a, 1, 0x61, 0x12]),
    Buffer.from(mark("proto")),
  ]);
  const bin = Buffer.from(mark("metadata-bin"));
  const metadata = {
    ...HEADERS,
    "x-lance-b-bin": bin.toString("base64"),
    "x-lance-broken-bin": mark("metadata-broken"),
  };
  for (const path of [
    `${SERVICE}/DescribeTable`,
    `${SERVICE}/CreateTable`,
    `${SERVICE}/QueryTable`,
    `/${mark("rpc")}/x`,
  ]) {
    for (const message of [
      Buffer.alloc(0),
      Buffer.from("\x0a\x01t", "latin1"),
      names,
      Buffer.from(`\xff${mark("message")}`, "latin1"),
    ]) {
      const frame = Buffer.concat([Buffer.from([0, 0, 0, 0, message.length]), message]);
      await grpc(port, path, metadata, frame);
      await grpc(port, path, { ...metadata, authorization: `Bearer ${mark("metadata-bytes")}\xe9` }, frame);
      await grpc(
        port,
        path,
        { ...metadata, "grpc-timeout": mark("grpc-timeout"), "grpc-encoding": mark("encoding") },
        frame,
      );
    }
  }
}
