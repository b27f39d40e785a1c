import { afterEach, expect, test, vi } from "vitest";
import { LanceError } from "../../namespace/errors.ts";
import { collectBody } from "./fetch-transport.ts";

const MEBIBYTE = 2 ** 20;

async function* pieces(count: number): AsyncIterable<Uint8Array> {
  for (let at = 0; at < count; at++) yield new Uint8Array(MEBIBYTE).fill(at);
}

afterEach(() => vi.unstubAllGlobals());

test("a body is collected in its order, and the browser keeps it a part at a time", async () => {
  const sizes: number[] = [];
  class Watched extends Blob {
    constructor(parts: (Blob | Uint8Array<ArrayBuffer>)[] = []) {
      super(parts);
      sizes.push(parts.reduce((sum, part) => sum + (part instanceof Uint8Array ? part.byteLength : 0), 0));
    }
  }
  vi.stubGlobal("Blob", Watched);
  const body = await collectBody(pieces(40), new AbortController().signal);
  const bytes = new Uint8Array(await body.arrayBuffer());
  expect(bytes.byteLength).toBe(40 * MEBIBYTE);
  expect(Array.from({ length: 40 }, (_, at) => bytes[at * MEBIBYTE])).toEqual([...Array(40).keys()]);
  expect(Math.max(...sizes)).toBe(16 * MEBIBYTE);
});

test("a body for which the browser has no room is refused before it is sent", async () => {
  class Lost extends Blob {
    override slice() {
      return { arrayBuffer: () => Promise.reject(new DOMException("lost", "NotReadableError")) } as never;
    }
  }
  vi.stubGlobal("Blob", Lost);
  const refused = await collectBody(pieces(2), new AbortController().signal).catch((error: unknown) => error);
  expect(refused).toBeInstanceOf(LanceError);
  expect(String(refused)).toMatch(/no room for the 3 MB of this upload; “lance-gateway import” needs none/);
});

test("a body whose call has ended is collected no further", async () => {
  await expect(collectBody(pieces(2), AbortSignal.abort(new Error("over")))).rejects.toThrow("over");
});
