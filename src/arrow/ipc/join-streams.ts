import { isDeepStrictEqual } from "node:util";
import { LanceError } from "../../namespace/errors.ts";
import { type ArrowSchema, decodeSchema } from "../schema.ts";
import { type ByteReader, createByteReader } from "./byte-reader.ts";
import { CONTINUATION, goesOn, MAX_METADATA_BYTES, malformed, parseMessageHead } from "./message.ts";
import { END_OF_STREAM } from "./stream.ts";

/**
 * Joins Arrow IPC streams of equal schemas into a single stream on their way; messages pass unchanged.
 *
 * It opens the streams one after the other. Without streams, the result has no bytes.
 *
 * @throws LanceError InvalidInput for a malformed stream, TableSchemaValidationError if the schemas differ.
 */
export async function* joinIpcStreams(
  streams: Iterable<() => AsyncIterable<Uint8Array>> | AsyncIterable<() => AsyncIterable<Uint8Array>>,
): AsyncIterable<Uint8Array> {
  let schema: ArrowSchema | undefined;
  for await (const open of streams) {
    await using reader = createByteReader(open());
    const start = await nextMessage(reader);
    if (start === undefined || start.kind !== "schema")
      throw malformed(0, "a stream begins without a schema");
    const own = decodeSchema(start.metadata);
    if (schema === undefined) yield start.framed;
    else if (!isDeepStrictEqual(schema, own)) {
      throw new LanceError("TableSchemaValidationError", "the parts of a write have different schemas");
    }
    schema ??= own;
    let position = start.framed.byteLength;
    for (;;) {
      const message = await nextMessage(reader);
      if (message === undefined) break;
      position += message.framed.byteLength + message.bodyLength;
      yield message.framed;
      let left = message.bodyLength;
      for await (const chunk of reader.pass(left)) {
        left -= chunk.byteLength;
        yield chunk;
      }
      if (left > 0) throw malformed(0, "a stream ends in the middle of a message");
    }
    if ((await reader.peek(1)).byteLength > 0) throw goesOn(position);
  }
  if (schema !== undefined) yield END_OF_STREAM;
}

/** Reads the next message without its body; returns undefined at the end of the stream. */
export async function nextMessage(reader: ByteReader) {
  let prefix = Buffer.from(await reader.take(4));
  if (prefix.byteLength === 0) return undefined;
  if (prefix.byteLength === 4 && prefix.readUInt32LE(0) === CONTINUATION) {
    prefix = Buffer.concat([prefix, await reader.take(4)]);
  }
  const length = prefix.byteLength % 4 === 0 ? prefix.readUInt32LE(prefix.byteLength - 4) : -1;
  if (length === 0) return undefined;
  if (length < 0 || length > MAX_METADATA_BYTES) throw malformed(0, "a stream has a broken message");
  const metadata = await reader.take(length);
  if (metadata.byteLength < length) throw malformed(0, "a stream ends in the middle of a message");
  const { kind, bodyLength } = parseMessageHead(metadata, 0);
  return { kind, bodyLength, metadata, framed: Buffer.concat([prefix, metadata]) };
}

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
