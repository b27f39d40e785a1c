import { LanceError } from "../../namespace/errors.ts";
import type { ByteHold } from "../../namespace/memory/byte-budget.ts";
import { createByteReader } from "../ipc/byte-reader.ts";
import { readMetadata } from "../ipc/file.ts";
import { malformed, parseMessageHead } from "../ipc/message.ts";
import { END_OF_STREAM } from "../ipc/stream.ts";
import { type ArrowField, decodeSchema } from "../schema.ts";

/** Largest body of a message, in bytes: a batch is in memory as a whole while its rows are written. */
const MAX_BATCH_BYTES = 64 * 1024 * 1024;

const ARROW = "accept application/vnd.apache.arrow.stream";

/** Types that Lance does not store, so that an upstream alone may return them. The library of Arrow does not read the views. */
const UNREAD: ReadonlySet<string> = new Set(["binary_view", "utf8_view", "interval"]);

/**
 * Yields the messages of an IPC stream one by one, with bodies in memory of their own: the memory of the input may be freed as soon as it has been read.
 *
 * @param hold account that the bodies are taken from before they are read: the last batch and all dictionaries
 * @throws LanceError Unsupported for types, batches and compressions that cannot be read here, InvalidInput for a malformed stream, and the hold's refusal.
 */
export async function* wholeMessages(
  chunks: AsyncIterable<Uint8Array>,
  hold: ByteHold,
): AsyncIterable<Uint8Array> {
  await using reader = createByteReader(chunks);
  const dictionaries = new Map<bigint, number>();
  let [position, batchBytes, isBegun, copies] = [0, 0, false, 1];
  for (;;) {
    const message = await readMetadata(reader, position);
    if (message === undefined) break;
    const head = parseMessageHead(message.metadata, position);
    if (!isBegun && head.kind !== "schema") throw malformed(position, "a message comes before the schema");
    if (head.kind === "schema") copies = checkTypes(message.metadata) ? 2 : 1;
    if (head.isCompressed)
      throw new LanceError(
        "Unsupported",
        `the result is compressed, and rows as JSON come from others; ${ARROW}`,
      );
    isBegun = true;
    const { bodyLength, dictionaryId } = head;
    if (bodyLength > MAX_BATCH_BYTES) throw tooLong(bodyLength);
    hold.release(batchBytes);
    batchBytes = dictionaryId === undefined ? copies * bodyLength : 0;
    if (dictionaryId !== undefined && !head.isDelta) {
      hold.release(dictionaries.get(dictionaryId) ?? 0);
      dictionaries.delete(dictionaryId);
    }
    hold.take(dictionaryId === undefined ? batchBytes : bodyLength);
    if (dictionaryId !== undefined)
      dictionaries.set(dictionaryId, (dictionaries.get(dictionaryId) ?? 0) + bodyLength);
    const body = await reader.take(bodyLength);
    if (body.byteLength < bodyLength) throw malformed(position, "the stream ends in the middle of a message");
    yield Buffer.concat([message.framed, body]);
    position += message.framed.byteLength + bodyLength;
  }
  if (!isBegun) throw malformed(0, "the stream has no schema");
  // The source may still fail, and would take a reader that stops here for gone.
  for await (const _ of reader.rest());
  yield END_OF_STREAM;
}

/** Returns whether there are large lists, whose batches are copied before they are read. */
function checkTypes(metadata: Uint8Array): boolean {
  const { fields } = decodeSchema(metadata);
  checkNames(fields, "");
  for (const field of fields) checkField(field, field.name, false);
  return fields.some(hasLargeList);
}

function hasLargeList({ type, children }: ArrowField): boolean {
  return type.name === "large_list" || children.some(hasLargeList);
}

function checkField({ type, children, dictionary }: ArrowField, path: string, isInDictionary: boolean): void {
  const { name } = type;
  const isEncoded = isInDictionary || dictionary !== undefined;
  const isUnread = UNREAD.has(name) || (name === "large_list" && isEncoded);
  if (isUnread || (name === "decimal" && type.bits < 128))
    throw new LanceError(
      "Unsupported",
      `column ${JSON.stringify(path)} has the type ${name}, which rows as JSON do not have; ${ARROW}, or leave the column out`,
    );
  if (name === "struct") checkNames(children, path);
  for (const child of children) checkField(child, `${path}.${child.name}`, isEncoded);
}

/** A second member of the same name would be lost. */
function checkNames(fields: readonly ArrowField[], path: string): void {
  const names = new Set<string>();
  for (const { name } of fields) {
    const full = JSON.stringify(path === "" ? name : `${path}.${name}`);
    if (names.has(name))
      throw new LanceError("Unsupported", `the column ${full} occurs twice, which rows as JSON cannot show`);
    names.add(name);
  }
}

function tooLong(bytes: number): LanceError {
  return new LanceError(
    "Unsupported",
    `a batch of the result has ${bytes} bytes, and rows as JSON come from at most ${MAX_BATCH_BYTES}; ${ARROW}`,
  );
}
