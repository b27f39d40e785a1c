import { createByteReader } from "./byte-reader.ts";
import { nextMessage } from "./join-streams.ts";
import { malformed } from "./message.ts";
import { END_OF_STREAM } from "./stream.ts";

/**
 * Splits an Arrow IPC stream into streams of a single batch each, with the schema and the dictionaries that the batch
 * needs. A stream without batches stays a single stream without batches. Messages are not decoded.
 *
 * @throws LanceError InvalidInput for a malformed stream.
 */
export async function* splitIpcStream(chunks: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
  await using reader = createByteReader(chunks);
  const schema = await nextMessage(reader);
  if (schema?.kind !== "schema") throw malformed(0, "a stream begins without a schema");
  const head = [schema.framed];
  let batches = 0;
  for (;;) {
    const message = await nextMessage(reader);
    if (message === undefined) break;
    const { kind, framed, bodyLength } = message;
    const body = await reader.take(bodyLength);
    if (body.byteLength < bodyLength) throw malformed(0, "a stream ends in the middle of a message");
    if (kind === "dictionary") {
      head.push(framed, Buffer.from(body));
      continue;
    }
    batches += 1;
    yield Buffer.concat([...head, framed, body, END_OF_STREAM]);
  }
  if (batches === 0) yield Buffer.concat([...head, END_OF_STREAM]);
}
