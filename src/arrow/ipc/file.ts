import { createByteReader } from "./byte-reader.ts";
import { createFileDictionaries } from "./file-dictionaries.ts";
import { type Block, fileTail } from "./footer.ts";
import { CONTINUATION, FILE_MAGIC, MAX_METADATA_BYTES, malformed, parseMessageHead } from "./message.ts";

const FILE_HEAD = Buffer.concat([FILE_MAGIC, new Uint8Array(2)]);

/** Size of a body, in bytes, below which copying costs less than sending it separately. */
const SMALL_BODY_BYTES = 64 * 1024;

/**
 * Converts an Arrow IPC stream, split anywhere, to an IPC file on its way.
 *
 * Messages pass unchanged, with backpressure. A file cannot replace a dictionary, so the conversion omits a repeated
 * dictionary and appends a different one to the previous one; the indices of later batches move. An input that
 * already is a file passes unchanged.
 *
 * @throws LanceError InvalidInput for a malformed stream; Unsupported if a dictionary changes and the indices cannot
 *   move.
 */
export async function* toIpcFile(chunks: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
  await using reader = createByteReader(chunks);
  const start = await reader.peek(FILE_MAGIC.byteLength);
  if (FILE_MAGIC.every((byte, i) => start[i] === byte)) {
    yield* reader.rest();
    return;
  }
  let begun: Uint8Array = FILE_HEAD;
  let position = FILE_HEAD.byteLength;
  let schema: Uint8Array | undefined;
  const blocks = { dictionary: [] as Block[], batch: [] as Block[] };
  const dictionaries = createFileDictionaries();

  for (;;) {
    const offset = position - FILE_HEAD.byteLength;
    const message = await readMetadata(reader, offset);
    if (message === undefined) break;
    const { metadata } = message;
    let { framed } = message;
    const head = parseMessageHead(metadata, offset);
    const isDictionary = head.kind === "dictionary";
    const moves = head.kind === "batch" && schema !== undefined && dictionaries.moved;
    if (isDictionary || moves || head.bodyLength <= SMALL_BODY_BYTES) {
      const body = await exactly(reader.take(head.bodyLength), head.bodyLength, offset);
      const added = isDictionary ? dictionaries.add(head, framed, metadata, body) : framed;
      if (added === undefined) continue;
      framed = added;
      const whole = Buffer.concat([begun, framed, body]);
      if (moves) dictionaries.move(schema as Uint8Array, metadata, whole.subarray(-head.bodyLength));
      yield whole;
    } else {
      yield Buffer.concat([begun, framed]);
      let left = head.bodyLength;
      for await (const chunk of reader.pass(left)) {
        left -= chunk.byteLength;
        yield chunk;
      }
      if (left > 0) throw malformed(offset, "the stream ends in the middle of a message");
    }
    begun = new Uint8Array();
    const block = { offset: position, metadataLength: framed.byteLength, bodyLength: head.bodyLength };
    if (head.kind === "schema") schema = metadata;
    else blocks[head.kind].push(block);
    position += block.metadataLength + block.bodyLength;
  }
  if (schema === undefined) throw malformed(0, "the stream has no schema");
  // The source may still fail, and would take a reader that stops here for gone.
  for await (const _ of reader.rest());
  yield fileTail(schema, blocks.dictionary, blocks.batch);
}

interface Reader {
  take(length: number): Promise<Uint8Array>;
}

/** Reads the next message's prefix and metadata; returns undefined at the end of the stream. */
export async function readMetadata(
  reader: Reader,
  offset: number,
): Promise<{ framed: Uint8Array; metadata: Uint8Array } | undefined> {
  let prefix = Buffer.from(await reader.take(4));
  if (prefix.byteLength === 0) return undefined;
  if (prefix.byteLength === 4 && prefix.readUInt32LE(0) === CONTINUATION) {
    prefix = Buffer.concat([prefix, await reader.take(4)]);
  }
  if (prefix.byteLength % 4 !== 0) throw malformed(offset, "the stream ends in the middle of a message");
  const length = prefix.readUInt32LE(prefix.byteLength - 4);
  if (length === 0) return undefined;
  if (length > MAX_METADATA_BYTES)
    throw malformed(offset, `the metadata of a message would be ${length} bytes long`);
  // A copy: the schema is needed to the end, when its chunk may be gone.
  const framed = Buffer.concat([prefix, await exactly(reader.take(length), length, offset)]);
  return { framed, metadata: framed.subarray(prefix.byteLength) };
}

async function exactly(bytes: Promise<Uint8Array>, length: number, offset: number): Promise<Uint8Array> {
  const taken = await bytes;
  if (taken.byteLength < length) throw malformed(offset, "the stream ends in the middle of a message");
  return taken;
}
