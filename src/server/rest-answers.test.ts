import { createHash } from "node:crypto";
import { create, type DescMethod, type Message } from "@bufbuild/protobuf";
import type { FastifyPluginCallback } from "fastify";
import { expect, onTestFinished, test, vi } from "vitest";
import { randomRequest } from "../../test/fixtures/server/random-requests.ts";
import { rawConnection, startServer } from "../../test/fixtures/server/server.ts";
import { fakeService } from "../../test/fixtures/wires/grpc.ts";
import { createRandom } from "../../test/support/random.ts";
import { seedOf } from "../../test/support/seed.ts";
import { DIALECTS } from "../dialects/registry.ts";
import { LanceNamespaceService } from "../gen/lance/namespace/v1/service_pb.ts";
import type { Call } from "../namespace/call/call.ts";
import { LanceError } from "../namespace/errors.ts";
import type { Service } from "../namespace/service.ts";
import type { AccessEntry } from "../pipeline/records/access-entry.ts";
import type { Refusal } from "../pipeline/records/refusals.ts";
import { createTranscoder } from "../transcode/transcoder.ts";

/** Answers to the calls below, and to the other requests. */
const RECORDED_CALLS = "rest-answers-to-calls.txt";
const RECORDED_OTHERS = "rest-answers-to-others.txt";

/** Size from which a body is on record by its digest. */
const LONG_BODY = 2_000;

const DESCRIBE = "POST /v1/table/demo$events/describe";
const JSON_TYPE = "content-type: application/json";
const ID = '{"id":["demo","events"]}';

const transcoders = DIALECTS.map((dialect) => createTranscoder([LanceNamespaceService], dialect));
const service: Service = {
  ...fakeService(),
  async unary(method: DescMethod, request: Message, call: Call) {
    const { version, limit } = request as Message & { version?: bigint; limit?: number };
    call.responseHeaders["x-lance-version"] = String(version);
    if (version === 404n) throw new LanceError("TableNotFound", "gone", { headers: { "retry-after": "1" } });
    if (version === 500n) throw new Error("a secret");
    if (version === 501n) call.responseHeaders["x-lance-version"] = "two\nlines";
    const size = Number(version ?? 0);
    const tables = Array.from({ length: limit ?? 0 }, (_, i) => `é${i}`);
    return create(method.output, { location: "é".repeat(size), tables } as never) as never;
  },
};

/** Hooks of an application, which look at every request and answer, and change nothing. */
const hooks: FastifyPluginCallback = Object.assign(
  ((app, _options, done) => {
    app.addHook("onRequest", (_request, _reply, next) => next());
    app.addHook("preHandler", async () => {});
    app.addHook("onSend", async (_request, _reply, payload) => payload);
    app.addHook("onResponse", (_request, _reply, next) => next());
    done();
  }) satisfies FastifyPluginCallback,
  { [Symbol.for("skip-override")]: true },
);

/** Notes requests, their calls and their refusals, without what differs from request to request. */
function createNotes() {
  const notes: unknown[] = [];
  return {
    notes,
    noteAccess({ client, method, path, http, call, refusal, status, finished, received, sent }: AccessEntry) {
      const facts = [client, method, path, http, status, finished, received, sent];
      const made = call && [call.method.name, call.protocol, call.id, call.begun, call.takes];
      notes.push(["access", ...facts, made, refusal && [refusal.protocol, refusal.code, refusal.path]]);
    },
    refused: ({ protocol, code, path, fault }: Refusal) =>
      void notes.push(["refused", protocol, code, path, fault]),
  };
}

async function startNoted(plugins: FastifyPluginCallback[]) {
  const { notes, ...noting } = createNotes();
  const server = await startServer({ service, transcoders, maxMessageBytes: 1_000, ...noting, plugins });
  onTestFinished(() => server[Symbol.asyncDispose]());
  return { ...server, notes };
}

const startBoth = () => Promise.all([startNoted([]), startNoted([hooks])]);

/** Sends bytes and returns those of the answer, without what differs from call to call. */
async function exchange(port: number, text: string): Promise<string> {
  const { socket, received, closed } = rawConnection(port);
  socket.write(text);
  await closed;
  return comparable(received());
}

/** Sends the beginning of a request, and returns the answer, an object of JSON, once it has arrived. */
async function firstAnswer(port: number, text: string): Promise<string> {
  const { socket, received } = rawConnection(port);
  const answered = new Promise<void>((resolve) => {
    socket.on("data", () => {
      if (received().endsWith("}")) resolve();
    });
  });
  socket.write(text);
  await answered;
  socket.destroy();
  return comparable(received());
}

function comparable(answer: string): string {
  return (
    answer
      .replace(/^date: .*$/gim, "date: now")
      // An answer sets this header itself if it begins before the body has arrived, as on a busy machine; otherwise Node adds it at the end.
      .replace(/^date: now\r\nconnection: close$/gim, "connection: close\r\ndate: now")
      .replace(/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, "new id")
  );
}

interface Sent {
  readonly line?: string;
  readonly version?: string;
  readonly headers?: readonly string[];
  readonly body?: string;
}

function textOf({ line = DESCRIBE, version = "1.1", headers = [JSON_TYPE], body = ID }: Sent): string {
  const isChunked = headers.some((header) => header.startsWith("transfer-encoding"));
  const length = isChunked || line.startsWith("GET") ? [] : [`content-length: ${Buffer.byteLength(body)}`];
  const head = [`${line} HTTP/${version}`, "host: localhost", "connection: close", ...headers, ...length];
  return `${head.join("\r\n")}\r\n\r\n${line.startsWith("GET") ? "" : body}`;
}

const ofVersion = (version: number) => ({ body: `{"id":["demo","events"],"version":${version}}` });

/** Calls of the contract. */
const CALLS: Readonly<Record<string, Sent>> = {
  "a call": {},
  "an escaped delimiter": { line: "POST /v1/table/demo%24events/describe" },
  "another delimiter": { line: "POST /v1/table/demo.events/describe?delimiter=." },
  "an id of the client": { headers: [JSON_TYPE, "x-request-id: mine"] },
  "no type": { headers: [] },
  "no body": { body: "" },
  "a body in chunks": {
    headers: [JSON_TYPE, "transfer-encoding: chunked"],
    body: `18\r\n${ID}\r\n0\r\n\r\n`,
  },
  "an answer of several bytes a character": ofVersion(3),
  "a long answer": ofVersion(300_000),
  "a long list": { line: "GET /v1/namespace/demo/table/list?limit=100000", headers: [] },
  "an answer without a body": { line: "POST /v1/table/demo$events/exists" },
  "a GET": { line: "GET /v1/namespace/demo/list?limit=3", headers: [] },
  "a client of LanceDB": { headers: [JSON_TYPE, "user-agent: LanceDB-Python-Client/0.30.0"] },
  "a slash at the end": { line: `${DESCRIBE}/` },
  "a slash at the end, and a failure": { line: `${DESCRIBE}/`, ...ofVersion(404) },
  "a slash before a query": { line: "POST /v1/table/demo.events/describe/?delimiter=." },
  "a connection of HTTP/1.0": { version: "1.0" },
  "a body that is not JSON": { body: "{" },
  "a body for another object": { body: '{"id":["other"]}' },
  "an unknown coding": { headers: [JSON_TYPE, "content-encoding: odd"] },
  "a failure": ofVersion(404),
  "an unknown failure": ofVersion(500),
  "a header that cannot be sent": ofVersion(501),
  "a header that comes twice": { headers: [JSON_TYPE, "x-request-id: one", "x-request-id: two"] },
  "a type that comes twice": { headers: [JSON_TYPE, "content-type: text/plain"] },
  "a client that waits to go on": { headers: [JSON_TYPE, "expect: 100-continue"] },
  "a method that is overridden": { headers: [JSON_TYPE, "x-http-method-override: DELETE"] },
  "a client that a proxy names": {
    headers: [JSON_TYPE, "forwarded: for=192.0.2.1", "x-forwarded-for: 192.0.2.2"],
  },
  "unknown and odd parameters": { line: `${DESCRIBE}?limit=1&unknown=1&delimiter=&delimiter=.&=&%zz` },
  "a delimiter that takes the name apart": { line: "POST /v1/table/demo$events/describe?delimiter=e" },
  "a GET with a body": { line: "GET /v1/namespace/demo/list", headers: ["content-length: 2"], body: "{}" },
  "dots and semicolons": { line: "POST /v1/table/..;a/describe", body: "" },
  "a backslash": { line: "POST /v1/table/demo\\events/describe", body: "" },
  "bytes outside of ASCII": { line: "POST /v1/table/d\u00e9mo/describe", body: "" },
  "an odd time": { headers: [JSON_TYPE, "x-request-timeout-ms: soon"] },
};

/** Requests that the router, the hooks and the parsers decide about. */
const OTHERS: Readonly<Record<string, Sent>> = {
  "an unknown path": { line: "POST /v1/table/demo$events/nothing" },
  "another HTTP method": { line: "DELETE /v1/table/demo$events/describe" },
  "a path without a name": { line: "POST /v1/table//describe" },
  "two slashes at the end": { line: `${DESCRIBE}//` },
  "slashes around a path": { line: "POST //v1/table/demo$events/describe/" },
  "other escapes": { line: "POST /v1/table/demo$%65vents/describe" },
  "an escaped word of the route": { line: "POST /v1/table/demo$events/%64escribe" },
  "a broken escape": { line: "POST /v1/table/demo%2/describe" },
  "a fragment": { line: "POST /v1/table/demo#events/describe" },
  "a path in absolute form": { line: "POST http://localhost/v1/table/demo$events/describe" },
  "the type of a form": { headers: ["content-type: text/plain"] },
  "a malformed type": { headers: ["content-type: json"] },
  "an escaped slash": { line: "POST /v1/table/demo%2Fevents/describe", body: "" },
  "a delimiter that is escaped twice": { line: "POST /v1/table/demo%2524events/describe?delimiter=%2524" },
  "escaped dots": { line: "POST /v1/table/%2e%2e/describe", body: "" },
  "a type with a parameter": { headers: ["content-type: application/json; charset=utf-8"] },
  "a HEAD": { line: "HEAD /v1/namespace/demo/list", headers: [], body: "" },
  "a page of another site": { headers: [JSON_TYPE, "sec-fetch-site: cross-site"] },
  "a page of another origin": { headers: [JSON_TYPE, "origin: http://evil.example"] },
  "a probe": { line: "GET /healthz", headers: [] },
};

/** Returns what a server answers to each of some requests and notes of them, as a text. */
async function answersOf(
  { port, notes }: { readonly port: number; readonly notes: unknown[] },
  requests: Readonly<Record<string, Sent>>,
): Promise<string> {
  const answers: string[] = [];
  for (const [title, sent] of Object.entries(requests)) {
    const answer = await exchange(port, textOf(sent));
    expect(answer, title).toMatch(/^HTTP\/1\.1 \d{3} /);
    await vi.waitFor(() => expect(notes.at(-1), title).toContain("access"), { timeout: 60_000 });
    const noted = notes.splice(0).map((note) => `${JSON.stringify(note)}\n`);
    answers.push(`== ${title}\n${shortened(answer)}\n${noted.join("")}`);
  }
  return answers.join("\n");
}

/** Returns an answer with its lines in the form of a text file, and a long body as its size and digest. */
function shortened(answer: string): string {
  const end = answer.indexOf("\r\n\r\n") + 4;
  const [head, body] = [answer.slice(0, end).replaceAll("\r\n", "\n"), answer.slice(end)];
  if (body.length <= LONG_BODY) return head + body;
  return `${head}(${body.length} bytes, SHA-256 ${createHash("sha256").update(body).digest("hex")})`;
}

test("requests of REST have the answers on record, whether hooks of an application see them or not", async () => {
  for (const server of await startBoth()) {
    await expect(await answersOf(server, CALLS)).toMatchFileSnapshot(RECORDED_CALLS);
    await expect(await answersOf(server, OTHERS)).toMatchFileSnapshot(RECORDED_OTHERS);
  }
});

test("a body that is too large is refused before it ends, with the same bytes", async () => {
  const [plain, hooked] = await startBoth();
  const head = textOf({ body: "x".repeat(100_000) }).split("x", 1)[0] as string;
  const [received, expected] = await Promise.all([plain, hooked].map(({ port }) => firstAnswer(port, head)));
  expect(received).toMatch(/^HTTP\/1\.1 413 /);
  expect(received).toBe(expected);
});

test("a connection serves calls one after the other", async () => {
  const [plain, hooked] = await startBoth();
  const text = textOf({}).replace("connection: close\r\n", "") + textOf(ofVersion(404));
  const received = await exchange(plain.port, text);
  expect(received).toBe(await exchange(hooked.port, text));
  expect(received.match(/HTTP\/1\.1 (?:200|404) /g)).toHaveLength(2);
});

test("a client that leaves ends its call", async () => {
  const left = Promise.withResolvers<unknown>();
  const begun = Promise.withResolvers<void>();
  await using server = await startServer({
    transcoders,
    plugins: [],
    service: {
      ...service,
      unary: (_method, _request, { signal }) => {
        begun.resolve();
        return new Promise<never>((_, reject) => {
          signal.addEventListener("abort", () => {
            left.resolve(signal.reason);
            reject(signal.reason);
          });
        });
      },
    },
  });
  const { socket } = rawConnection(server.port);
  socket.write(textOf({}));
  await begun.promise;
  socket.destroy();
  expect(await left.promise).toMatchObject({ message: "the client disconnected" });
});

const linesOf = (notes: readonly unknown[]) => notes.map((note) => JSON.stringify(note)).sort();

test("random requests have an answer of one shape, which hooks do not change", async () => {
  const random = createRandom(seedOf("REST_SEED"));
  const servers = await startBoth();
  for (let sent = 0; sent < 600; sent++) {
    const text = randomRequest(random);
    const [received, expected] = await Promise.all(servers.map(({ port }) => exchange(port, text)));
    expect(received, text).toBe(expected);
    expect(received, text).toMatch(/^HTTP\/1\.1 \d{3} /);
    // A connection may close after the next request has arrived, so that the lines have no fixed order.
    const [plain, hooked] = servers;
    await vi.waitFor(() => expect(linesOf(plain.notes), text).toEqual(linesOf(hooked.notes)), 60_000);
    for (const { notes } of servers) notes.length = 0;
  }
});
