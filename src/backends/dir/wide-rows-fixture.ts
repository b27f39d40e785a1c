import { Int32, Table, tableToIPC, Utf8, vectorFromArray } from "apache-arrow";
import type { TestContext } from "vitest";
import { createDirectoryBackend } from "./index.ts";
import { createReadAhead, DEFAULT_READ_AHEAD_BYTES, type ReadAhead } from "./operations/read/read-ahead.ts";
import { clientOf, silent, temporaryDirectory } from "./test-support.ts";

/** Number of rows of a table. */
export const ROWS = 200;

/** Number of bytes of each text. */
export const TEXT_BYTES = 128 * 1024;

/** Number of bytes that a scan takes for a wide column and its batches. */
export const SCAN_BYTES = 24 * 1024 * 1024;

/** Opens a table `t` with ids and texts; `entered` returns the sizes of the places that were taken since the last look. */
export async function openTexts(t: TestContext, textBytes = TEXT_BYTES) {
  const memory = createReadAhead({ maxBytes: DEFAULT_READ_AHEAD_BYTES });
  const places: number[] = [];
  const enter: ReadAhead["enter"] = (bytes, ...rest) => {
    places.push(bytes);
    return memory.enter(bytes, ...rest);
  };
  const enterForWork: ReadAhead["enterForWork"] = (bytes, signal) => {
    places.push(bytes);
    return memory.enterForWork(bytes, signal);
  };
  const tryEnter: ReadAhead["tryEnter"] = (bytes) => {
    places.push(bytes);
    return memory.tryEnter(bytes);
  };
  const readAhead = { ...memory, enter, enterForWork, tryEnter };
  const root = await temporaryDirectory(t);
  const backend = await createDirectoryBackend({ root, log: silent, readAhead });
  const client = clientOf(backend);
  t.onTestFinished(client.close);
  const ids = Array.from({ length: ROWS }, (_, id) => id);
  const texts = ids.map((id) => `${id} `.padEnd(textBytes, "x"));
  const rows = new Table({ id: vectorFromArray(ids, new Int32()), text: vectorFromArray(texts, new Utf8()) });
  await client.upload("createTable", "t", {}, tableToIPC(rows, "stream"));
  return { root, backend, client, entered: () => places.splice(0), held: () => memory.held };
}
