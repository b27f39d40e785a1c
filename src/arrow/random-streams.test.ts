import assert from "node:assert/strict";
import { tableFromIPC } from "apache-arrow";
import fc from "fast-check";
import { test } from "vitest";
import { columns, randomTable, rowsIn, streamOf } from "../../test/fixtures/arrow/random-table.ts";
import { join, split } from "../../test/fixtures/arrow/upload.ts";
import { createRandom } from "../../test/support/random.ts";
import { toIpcFile, toIpcStream } from "./ipc/file.ts";
import { joinIpcStreams, splitIpcStream } from "./ipc/join-streams.ts";

test("a stream that becomes a file, parts, or a stream again has the same rows", async () => {
  const counts = fc.array(fc.nat(20), { minLength: 1, maxLength: 4 });
  await fc.assert(
    fc.asyncProperty(columns, counts, fc.array(fc.nat()), fc.nat(), async (fields, batches, cuts, seed) => {
      const random = createRandom(seed);
      const { stream, rows } = streamOf(batches.map((count) => randomTable(fields, count, random)));
      const read = async (bytes: AsyncIterable<Uint8Array>) => rowsIn(tableFromIPC(await join(bytes)));
      assert.deepEqual(await read(toIpcFile(split(stream, cuts))), rows, "a file");
      assert.deepEqual(await read(toIpcStream(toIpcFile(split(stream, cuts)))), rows, "a stream again");
      const parts: Uint8Array[] = [];
      for await (const part of splitIpcStream(split(stream, cuts))) parts.push(part);
      assert.deepEqual(
        parts.flatMap((part) => rowsIn(tableFromIPC(part))),
        rows,
        "parts",
      );
      const opened = parts.map((part) => () => split(part, cuts));
      assert.deepEqual(await read(joinIpcStreams(opened)), rows, "joined parts");
    }),
    { numRuns: Number(process.env["STREAM_RUNS"] ?? 40) },
  );
});
