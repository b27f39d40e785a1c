import assert from "node:assert/strict";
import fc from "fast-check";
import { test } from "vitest";
import { LanceError } from "../../namespace/errors.ts";
import { binaryType, decodeText, inTextMode } from "./web-text.ts";

async function* piecesOf(...texts: readonly string[]): AsyncGenerator<Uint8Array> {
  for (const text of texts) yield Buffer.from(text);
}

async function collected(pieces: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const all: Uint8Array[] = [];
  for await (const piece of pieces) all.push(piece);
  return Buffer.concat(all);
}

const decoded = (...texts: readonly string[]) => collected(decodeText(piecesOf(...texts), (error) => error));

test("a body is decoded however it is cut, and padded wherever its sender has flushed it", async () => {
  const part = fc.uint8Array({ maxLength: 9 });
  const property = fc.asyncProperty(fc.array(part), fc.integer({ min: 1, max: 7 }), async (parts, size) => {
    const text = parts.map((bytes) => Buffer.from(bytes).toString("base64")).join("");
    const cut = text.match(new RegExp(`.{1,${size}}`, "g")) ?? [];
    assert.deepEqual(await decoded(...cut), Buffer.concat(parts));
  });
  await fc.assert(property);
});

test("a body that is not base64 is InvalidInput, instead of fewer bytes", async () => {
  for (const text of [
    "A",
    "AA",
    "AAA",
    "AA=",
    "====",
    "A===",
    "AA==A",
    "AAAA==AA",
    "AA=A",
    "A A=",
    "AA\n=",
    "AA-_",
    "é==",
  ])
    await assert.rejects(
      decoded(text),
      (error) => error instanceof LanceError && error.is("InvalidInput"),
      text,
    );
  for (const text of ["", "AA==", "AAA=", "AAAA", "AA==AAA="]) await decoded(text);
});

test("an answer is encoded piece by piece, without the length that it had", async () => {
  const bytes = Buffer.alloc(1_000_001, "abc");
  const header = new Headers({ "content-type": "application/grpc-web+proto", "content-length": "9" });
  async function* body() {
    yield Buffer.from("a");
    yield new Uint8Array(0);
    yield bytes;
  }
  const answer = inTextMode({ status: 200, header, body: body() });
  assert.equal(answer.header?.get("content-type"), "application/grpc-web-text+proto");
  assert.equal(answer.header?.get("content-length"), null);
  const text = String(await collected(answer.body ?? piecesOf()));
  assert.equal(text, `YQ==${bytes.toString("base64")}`);
  assert.equal(
    binaryType(" application/grpc-web-text+json; charset=utf-8"),
    "application/grpc-web+json; charset=utf-8",
  );
});
