// Answers of REST upstreams that a seed draws, byte by byte: good ones, and ones that parsers and proxies have read in different ways.
import type { Socket } from "node:net";
import { gzipSync } from "node:zlib";
import type { Random } from "../../../test/support/random.ts";

/** An answer as it goes over a connection, in Latin-1. */
export interface RandomAnswer {
  /** Written one after the other, each in a turn of its own. */
  readonly pieces: readonly string[];
  /** Whether the upstream closes the connection behind them. */
  readonly closes: boolean;
}

/** Largest answer that is read, in bytes. */
export const MAX_ANSWER_BYTES = 5_000;

const STATUSES = [
  ...["200 OK", "200 OK", "200 OK", "200", "201 Created", "202 A", "204 No Content", "206 Partial", "299 x"],
  ...["304 Not Modified", "301 Moved", "400 B", "401 U", "403 F", "404 Not Found", "405 M", "409 C", "412 P"],
  ...["416 R", "429 Too Many", "499 x", "500 I", "501 N", "502 B", "503 S", "504 G", "599 x"],
];
const ODD_STATUSES = [
  "099 x",
  "999 x",
  "600 x",
  "20 OK",
  "2000 OK",
  "100 Continue",
  "101 Switching Protocols",
  "-1 x",
];
const VERSIONS = ["HTTP/1.0", "HTTP/1.1 ", "http/1.1", "HTTP/2.0", "HTTP/0.9", "ICY"];
const HEADERS = [
  ...[
    "content-type: application/json",
    "Content-Type: application/json; charset=utf-8",
    "content-type: text/plain",
  ],
  ...[
    "content-type: application/vnd.apache.arrow.stream",
    "content-type:",
    "date: now",
    'etag: "\xe9"',
    "x-empty:",
  ],
  ...[
    "Keep-Alive: timeout=5",
    "keep-alive: timeout=99999999999",
    "connection: keep-alive",
    "X-Request-Id: theirs",
  ],
  ...[
    "retry-after: 1",
    "retry-after: soon",
    "cache-control: no-store",
    "content-encoding: gzip",
    "set-cookie: a=b",
  ],
  ...[
    "x-lance-version: 7",
    "warning: 299",
    "location: /elsewhere",
    "www-authenticate: Bearer",
    "constructor: 1",
  ],
  ...["__proto__: x", "x-a: 1,2", "x-tab:\ta\tb", "content-range: bytes 0-1/2", "vary: *", "allow: GET"],
];
const ODD_HEADERS = [
  ...[
    "connection: close",
    "Connection: upgrade",
    "upgrade: h2c",
    "trailer: x-t",
    "set-cookie: c=d",
    "x-nul: \0",
  ],
  ...[
    "content-length: 2",
    "content-length: 3",
    "Content-Length: +2",
    "content-length: 2, 2",
    "content-length : 2",
  ],
  ...["transfer-encoding: gzip, chunked", "transfer-encoding: identity", "transfer-encoding: chunked"],
  ...[
    " folded: 1",
    "no colon",
    ": no name",
    "x-a: b\rx-c: d",
    "x: a\nb: c",
    "keep-alive: timeout=1",
    "x-del: \x7f",
  ],
];
const BODIES = [
  ...[
    '{"location":"l"}',
    "{}",
    "",
    "null",
    "[]",
    '{"location":"l"',
    '{"location":"\xc3\xa9"}',
    '{"location":"\xff"}',
  ],
  ...[' {"table":"t","properties":{"a":"b"}}\n', '{"properties":{},"context":{"header.x-a":"b"}}'],
  ...[
    '{"properties":{},"version":7}',
    '{"properties":{},"version":1e3}',
    '{"properties":{},"more":{"a":[1]}}',
  ],
  ...[
    '{"properties":{},"table":null}',
    '{"properties":{},"table":1}',
    '{"properties":{},"table":"a","table":"b"}',
  ],
  ...[
    '{"properties":{},"namespace":[]}',
    '{"properties":{},"location":"\\ud800"}',
    '{"properties":{"__proto__":"a"}}',
  ],
  ...['{"tables":["a","b"]}', '{"properties":[]}', "\xef\xbb\xbf{}", '{"a":NaN}', "<html>", '"text"', "7"],
  ...[
    '{"error":"gone","code":4}',
    '{"error":{"code":4,"message":"gone"}}',
    '{"title":"t","status":404,"detail":"d"}',
  ],
  ...['{"error":"gone","code":"4"}', '{"message":"m","type":"/errors/x","instance":"i"}'],
  `{"properties":{"a":"${"\xc3\xa9".repeat(1_000)}"}}`,
  ...[MAX_ANSWER_BYTES, MAX_ANSWER_BYTES + 1, 40_000].map((size) => " ".repeat(size - 2).concat("{}")),
  gzipSync("{}").toString("latin1"),
];

/**
 * Draws an answer.
 *
 * @param mark the value of a header, by which it is recognized
 * @param mayBeOdd whether it may be one that leaves doubts, or whose connection has no use afterwards
 */
export function randomAnswer(random: Random, mark: string, mayBeOdd: boolean): RandomAnswer {
  const chance = (one: number) => random.below(one) === 0;
  const hasOddity = mayBeOdd && chance(2);
  const isOdd = (one: number) => hasOddity && chance(one);
  const lines = [`x-mark: ${mark}`];
  while (!chance(2)) lines.push(random.pick(HEADERS));
  while (isOdd(2)) lines.splice(random.below(lines.length + 1), 0, random.pick(ODD_HEADERS));
  if (isOdd(5)) lines.push(`x-long: ${"l".repeat(random.pick([15_000, 16_200, 16_384, 40_000]))}`);
  const status = isOdd(6) ? random.pick(ODD_STATUSES) : random.pick(STATUSES);
  const version = isOdd(6) ? random.pick(VERSIONS) : "HTTP/1.1";
  const isEmpty = /^(?:204|304)/.test(status);
  const text = isEmpty && !isOdd(3) ? "" : random.pick(BODIES);
  const framing = mayBeOdd ? random.pick(["length", "length", "chunks", "end"] as const) : "length";
  let body = text;
  if (framing === "chunks" && !isEmpty) {
    lines.push("Transfer-Encoding: chunked");
    body = chunked(text, random, isOdd);
  } else if (framing === "length" && (!isEmpty || chance(2))) {
    const lie = isOdd(3) ? random.pick([-1, 1, 7]) : isEmpty ? random.pick([0, 0, 2]) : 0;
    lines.push(`${random.pick(["content-length", "Content-Length"])}: ${Math.max(0, text.length + lie)}`);
  }
  const early = "HTTP/1.1 103 Early Hints\r\nlink: a\r\n\r\n".repeat(isOdd(5) ? random.pick([1, 2, 9]) : 0);
  const end = random.pick(["\r\n", "\r\n", "\r\n", isOdd(5) ? "\n" : "\r\n"]);
  const more = isOdd(5)
    ? random.pick(["x", "HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nforged", "\r\n"])
    : "";
  let whole = [`${early}${version} ${status}`, ...lines, "", body].join(end) + more;
  if (isOdd(5)) whole = whole.slice(0, random.below(whole.length));
  const cuts = Array.from({ length: random.pick([0, 0, 0, 1, 3]) }, () => random.below(whole.length + 1));
  cuts.sort((a, b) => a - b);
  const pieces = [0, ...cuts].map((from, index) => whole.slice(from, cuts[index]));
  // Otherwise nobody could say where the answer ends.
  return { pieces, closes: hasOddity || (framing === "end" && !isEmpty) || chance(9) };
}

/** Cuts a text into chunks. */
function chunked(text: string, random: Random, isOdd: (one: number) => boolean): string {
  let coded = "";
  for (let at = 0; at < text.length; ) {
    const size = 1 + random.below(text.length - at);
    const lie = isOdd(8) ? random.pick([-1, 1]) : 0;
    coded += `${(size + lie).toString(16)}${random.pick(["", "", ";x=y"])}\r\n${text.slice(at, at + size)}\r\n`;
    at += size;
  }
  return `${coded}0\r\n${random.pick(["", "", "x-t: 1\r\n", "content-length: 1\r\n"])}\r\n`;
}

/** Writes an answer. */
export async function play({ pieces, closes }: RandomAnswer, socket: Socket): Promise<void> {
  for (const [index, piece] of pieces.entries()) {
    if (index > 0) await new Promise(setImmediate);
    if (socket.destroyed) return;
    socket.write(piece, "latin1");
  }
  if (closes) socket.end();
}
