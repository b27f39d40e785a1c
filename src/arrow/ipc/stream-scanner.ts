import type { Steps } from "../../runtime/pace.ts";
import { type ArrowSchema, uploadSchemaSteps } from "../schema.ts";
import { type BodyCheck, createBodyCheck } from "../upload/body-check.ts";
import { goesOn, MAX_UPLOAD_BUFFERS, malformed, parseMessageHead, readPrefix } from "./message.ts";
import type { PartBuffer } from "./part-buffer.ts";

/** A part of a stream as a file. */
interface SealedPart {
  readonly file: Buffer;
  readonly rows: number;
  /** Memory that the engine needs for it, in bytes. */
  readonly neededBytes: number;
  /** Size of the texts to which indices of dictionaries refer, in bytes. */
  readonly textBytes: number;
}

/** Number of messages that ends a part. */
const PART_MESSAGES = 65_536;

/** Smallest count of a part in the sum of what parts repeat, in bytes: each part is a write of its own. */
const LEAST_REPEATED_BYTES = 64 * 1024;

/** Follows the messages of a stream as it arrives. */
export interface StreamScanner {
  /** The schema, once it has arrived. */
  readonly schema: ArrowSchema;
  /**
   * Advances as far as whole messages have arrived. Returns the reason why the part must be cut first, because it has
   * its `size` or a `dictionary` is replaced; or that a `pause` is due.
   */
  advance(part: PartBuffer, isPauseDue: () => boolean): "size" | "dictionary" | "pause" | undefined;
  /** Continues without regard to the size of the part. */
  ignoreSize(): void;
  /** Makes a file of the messages so far; `begin` starts the next part with the bytes that follow them. */
  cut(part: PartBuffer): SealedPart & { begin(next: PartBuffer): void };
  /** Makes a file of the last part, after all bytes have arrived. */
  finish(part: PartBuffer): SealedPart;
}

/**
 * Creates a scanner of a stream.
 *
 * @param maxBytes bound on the unpacked size of the buffers, and on what all parts repeat
 * @param partBytes a part ends with the message that reaches it
 */
export function createStreamScanner(maxBytes: number, partBytes: number): StreamScanner {
  let wantedBytes = partBytes;
  let check: BodyCheck | undefined;
  let reading: Steps<ArrowSchema> | undefined;
  /** End of the stream in the part, once its end marker has arrived. */
  let streamEnd: number | undefined;
  /** Position of the next message in the part, and of the part in the stream. */
  let [position, before] = [0, 0];
  /** End of the next message in the part, once its head has been read: reading it with each piece of a body would take longer than the piece. */
  let awaited = 0;
  /** Bytes of this part that repeat earlier parts, and the sum for all parts so far. */
  let [repeated, repeatedInAll] = [0, 0];
  let [rowsBefore, neededBefore, textsBefore] = [0, 0, 0];
  let schemaMessage = new Uint8Array();
  let schemaMetadata = new Uint8Array();
  /** The dictionaries in use: the message that set one, and those that added to it. */
  const dictionaries = new Map<bigint, Uint8Array[]>();

  function place(): number {
    return before + position;
  }
  /** Whether the part has its size, in messages or in bytes as received or as the engine needs them; repeated bytes do not count. */
  function isFull(part: PartBuffer): boolean {
    if (wantedBytes === Number.POSITIVE_INFINITY) return false;
    const bytes = Math.max(position - repeated, checked().neededBytes - neededBefore);
    return bytes >= wantedBytes || part.messages >= PART_MESSAGES;
  }
  function checked(): BodyCheck {
    if (check === undefined) throw malformed(place(), "the stream ends before its schema is complete");
    return check;
  }
  /**
   * Adds the next message, a long schema in steps. Returns `begun` before the last step, `more` if the message has not arrived completely, or the
   * reason why it starts a new part.
   */
  function next(part: PartBuffer): "begun" | "taken" | "more" | "size" | "dictionary" {
    if (awaited > part.length) return "more";
    const { bytes } = part;
    const prefix = readPrefix(bytes, position);
    if (prefix === undefined) return "more";
    if (prefix.metadataLength === 0) {
      streamEnd = position + prefix.bytes;
      return "more";
    }
    if (part.hasBatch && isFull(part)) return "size";
    const metadataAt = position + prefix.bytes;
    const bodyAt = metadataAt + prefix.metadataLength;
    if (bodyAt > bytes.byteLength) return "more";
    const metadata = bytes.subarray(metadataAt, bodyAt);
    const head = parseMessageHead(metadata, place(), MAX_UPLOAD_BUFFERS);
    const end = bodyAt + head.bodyLength;
    awaited = end;
    if (end > bytes.byteLength) return "more";
    if (head.kind === "schema") {
      if (check !== undefined) throw malformed(place(), "there is a second schema");
      reading ??= uploadSchemaSteps(metadata);
      const step = reading.next();
      if (!step.done) return "begun";
      check = createBodyCheck(step.value, maxBytes);
      schemaMessage = Uint8Array.from(bytes.subarray(position, end));
      schemaMetadata = schemaMessage.subarray(prefix.bytes, bodyAt - position);
    } else {
      if (check === undefined) throw malformed(place(), "a message comes before the schema");
      if (head.dictionaryId !== undefined) {
        const known = dictionaries.get(head.dictionaryId);
        const message = bytes.subarray(position, end);
        const repeats = known !== undefined && !head.isDelta && known.length === 1;
        if (repeats && Buffer.compare(known[0] as Uint8Array, message) === 0) {
          position = end;
          return "taken";
        }
        if (known !== undefined && !head.isDelta && part.hasBatch) return "dictionary";
        check.add(head, metadata, bytes.subarray(bodyAt, end), place(), bodyAt - position);
        const copy = Uint8Array.from(message);
        if (head.isDelta && known !== undefined) known.push(copy);
        else dictionaries.set(head.dictionaryId, [copy]);
      } else {
        check.add(head, metadata, bytes.subarray(bodyAt, end), place(), bodyAt - position);
      }
      part.note(head.kind, position, bodyAt - position, head.bodyLength);
    }
    position = end;
    return "taken";
  }
  function seal(part: PartBuffer): SealedPart {
    const { rows, neededBytes, textBytes } = checked();
    const file = part.seal(position, schemaMetadata);
    const sealed = {
      file,
      rows: rows - rowsBefore,
      neededBytes: neededBytes - neededBefore,
      textBytes: textBytes - textsBefore,
    };
    [rowsBefore, neededBefore, textsBefore] = [rows, neededBytes, textBytes];
    return sealed;
  }
  /** Repeats the schema and the dictionaries at the start of a part. */
  function repeatHead(part: PartBuffer): number {
    part.reset();
    part.append(schemaMessage);
    for (const message of [...dictionaries.values()].flat()) {
      const prefix = readPrefix(Buffer.from(message.buffer, message.byteOffset, message.byteLength), 0);
      const metadataLength = (prefix?.bytes ?? 0) + (prefix?.metadataLength ?? 0);
      part.note("dictionary", part.length, metadataLength, message.byteLength - metadataLength);
      part.append(message);
    }
    repeatedInAll += Math.max(part.length, LEAST_REPEATED_BYTES);
    if (repeatedInAll > maxBytes)
      throw malformed(before + position, "its dictionaries change too often for their size");
    return part.length;
  }
  return {
    get schema() {
      return checked().schema;
    },
    advance(part, isPauseDue) {
      while (streamEnd === undefined) {
        if (isPauseDue()) return "pause";
        const step = next(part);
        if (step === "taken" || step === "begun") continue;
        if (step !== "more") return step;
        break;
      }
      // Rows of a second stream would be lost.
      if (streamEnd !== undefined && part.length > streamEnd) throw goesOn(before + streamEnd);
      return undefined;
    },
    ignoreSize() {
      wantedBytes = Number.POSITIVE_INFINITY;
    },
    cut(part) {
      // Sealing overwrites the bytes after the messages with the footer.
      const rest = Uint8Array.from(part.bytes.subarray(position));
      const end = place();
      const begin = (next: PartBuffer) => {
        position = repeatHead(next);
        awaited = 0;
        repeated = position;
        before = end - position;
        next.append(rest);
      };
      return { ...seal(part), begin };
    },
    finish(part) {
      checked();
      if (streamEnd === undefined && position !== part.length) {
        throw malformed(place(), "the stream ends in the middle of a message");
      }
      return seal(part);
    },
  };
}
