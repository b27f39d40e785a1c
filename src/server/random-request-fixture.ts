// Requests of REST that a seed draws: good ones, and ones that routers, parsers and proxies have disagreed about.
import type { Random } from "../../test/support/random.ts";

const LINES = [
  "POST /v1/table/demo$events/describe",
  "GET /v1/namespace/demo/list",
  "GET /v1/namespace/demo/table/list",
  "POST /v1/table/demo$events/exists",
  "POST /v1/table/demo$events/count_rows",
  "POST /v1/table/demo$events/insert",
  "POST /v1/table/demo$events/query",
  "GET /v1/table",
  "POST /v1/table/batch-commit",
  "POST /v1/table/version/create",
  "POST /v1/namespace/$/create",
];
const METHODS = ["POST", "GET", "HEAD", "PUT", "OPTIONS", "PATCH", "QUERY", "SEARCH"];
const SEGMENTS = [
  "..",
  ".",
  "%2e%2e",
  "%2F",
  "%24",
  "$",
  "$$",
  "a%00b",
  "%",
  "%zz",
  "é",
  "a b",
  "a;b",
  "*",
  ":x",
  "",
  "%252f",
  "v1",
  "describe",
  "+",
  "%C3%A9",
  "%ff",
  "~",
  "a,b",
  "'",
  "list",
  "table",
];
const QUERIES = [
  "delimiter=.",
  "delimiter=",
  "delimiter=%24",
  "limit=1",
  "limit=1&limit=2",
  "limit=01",
  "limit=1e0",
  "limit=-1",
  "limit=99999999999",
  "limit",
  "=",
  "&&",
  "?",
  "page_token=%",
  "unknown=1",
  "__proto__=1",
  "branch=a&branch=b",
  "id=x",
  "%6cimit=2",
  "limit=+1",
  "limit=%31",
  "delimiter=ab",
  "a#b",
  "limit=1;2",
];
const BODIES = [
  '{"id":["demo","events"]}',
  "",
  "{}",
  "[]",
  "null",
  "\ufeff{}",
  " {} ",
  "{} x",
  '{"id":["demo","events"],"id":["x"]}',
  '{"__proto__":{"id":["x"]}}',
  '{"version":9007199254740993}',
  '{"version":1e3}',
  '{"version":"7"}',
  '{"version":1.5}',
  '{"version":-1}',
  '{"id":"demo"}',
  '{"id":["\\ud800"]}',
  '{"id":["a\\u0000"]}',
  `${"[".repeat(500)}${"]".repeat(500)}`,
  '{"id":null}',
  '{"branch":"\ud83d\ude00"}',
  '{"version":0x1}',
  "{'a':1}",
  '{"a":NaN}',
  '{"context":{"header.x":"y"}}',
  '{"identity":{"api_key":"k"}}',
  '{"constructor":1}',
  "\x00",
  "\xff",
];
const HEADERS = [
  "content-type: application/json",
  "content-type: application/JSON",
  "content-type: application/json;",
  "content-type: application/json ; charset=latin1",
  "content-type:",
  "content-type: application/vnd.apache.arrow.stream",
  "content-type: multipart/form-data",
  "accept: text/plain",
  "accept: application/json;q=0",
  "accept-encoding: gzip",
  "x-request-id: a b",
  `x-request-id: ${"i".repeat(300)}`,
  "x-request-id:",
  // Not 0: whether an answer comes in no time is chance.
  "x-request-timeout-ms: -1",
  "x-request-timeout-ms: 100000",
  "x-request-timeout-ms: 1, 2",
  "content-encoding: gzip",
  "content-encoding: identity",
  "expect: 100-continue",
  "expect: 200-ok",
  "upgrade: h2c",
  "upgrade: websocket",
  "te: trailers",
  "transfer-encoding: chunked",
  "host: evil.example",
  "host:",
  "HOST: localhost",
  "x-api-key: a",
  "x-api-key: b",
  "authorization: Bearer x",
  "Authorization: Basic eA==",
  "cookie: a=b",
  "prefer: return=minimal",
  "user-agent: LanceDB-Python-Client/0.30.0",
  "x-lancedb-database: other",
  "origin: null",
  "sec-fetch-site: none",
  'forwarded: for="[::1]"',
  "traceparent: nonsense",
  "idempotency-key: 1",
  "if-match: *",
  "range: bytes=0-1",
  "__proto__: x",
  "x-forwarded-proto: https",
  "trailer: x-t",
  "http2-settings: AAMAAABkAAQAAP__",
];

/** Returns the bytes of a request after which the server closes the connection. */
export function randomRequest(random: Random): string {
  const chance = (one: number) => random.below(one) === 0;
  let [method = "", path = ""] = random.pick(LINES).split(" ");
  if (chance(8)) method = random.pick(METHODS);
  const parts = path.split("/");
  if (chance(3)) parts[1 + random.below(parts.length - 1)] = random.pick(SEGMENTS);
  if (chance(6)) parts.splice(1 + random.below(parts.length), 0, random.pick(SEGMENTS));
  path = parts.join("/") + (chance(5) ? "/" : "");
  if (chance(20)) path = `http://localhost${path}`;
  const query = () => Array.from({ length: 1 + random.below(3) }, () => random.pick(QUERIES)).join("&");
  if (chance(3)) path += `?${query()}`;

  const headers = ["host: localhost", "connection: close"];
  if (!chance(3)) headers.push("content-type: application/json");
  while (!chance(2)) headers.push(random.pick(HEADERS));
  const body = random.pick(BODIES);
  const size = Buffer.byteLength(body);
  const isChunked = headers.includes("transfer-encoding: chunked");
  const isSent = isChunked || method !== "GET" || chance(4);
  if (isSent && !isChunked) headers.push(`content-length: ${size}`);
  const chunk = `${size.toString(16)}${chance(2) ? ";x=y" : ""}\r\n${size === 0 ? "" : `${body}\r\n0\r\n`}`;
  const sent = isChunked ? `${chunk}${chance(2) ? "x-t: 1\r\n" : ""}\r\n` : body;
  const line = `${method} ${path} HTTP/${chance(8) ? "1.0" : "1.1"}`;
  return `${[line, ...headers].join("\r\n")}\r\n\r\n${isSent ? sent : ""}`;
}
