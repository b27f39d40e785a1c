import assert from "node:assert/strict";
import { create, type Message } from "@bufbuild/protobuf";
import { tableFromArrays, tableFromIPC, tableToIPC } from "apache-arrow";
import { test } from "vitest";
import { toFlightData } from "../../../test/support/flight.ts";
import { FlightDataSchema } from "../../gen/arrow/flight/protocol/Flight_pb.ts";
import { freeAtOnce } from "../../runtime/byte-memory.ts";
import { readStart, streamOf } from "./put-stream.ts";

const table = tableFromArrays({ id: Int32Array.from({ length: 500 }, (_, i) => i) });

test("a reader may free each chunk of a stream, and the next stream is whole", async () => {
  const { signal } = new AbortController();
  async function* requests(): AsyncIterable<Message> {
    for (const [i, data] of toFlightData(tableToIPC(table, "stream")).entries())
      yield create(FlightDataSchema, { ...data, ...(i === 0 && { flightDescriptor: { path: ["t"] } }) });
  }
  for (let i = 0; i < 2; i++) {
    const copies: Buffer[] = [];
    for await (const chunk of streamOf(await readStart(requests()), signal)) {
      assert.ok(chunk.byteLength > 0, "a chunk is empty");
      copies.push(Buffer.from(chunk));
      freeAtOnce(chunk);
    }
    assert.deepEqual(tableFromIPC(Buffer.concat(copies)).toArray(), table.toArray());
  }
});
