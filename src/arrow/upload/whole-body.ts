import { LanceError } from "../../namespace/errors.ts";
import { ArrivingBytes } from "../../runtime/byte-memory.ts";
import { isIpcFile } from "../ipc/ipc-forms.ts";
import { emptyBody, FILE_MAGIC, MAX_UPLOAD_BUFFERS, parseMessageHead, readPrefix } from "../ipc/message.ts";

/** Length of the footer's size and of the magic, at the end of a file. */
const FILE_TAIL_BYTES = 4 + FILE_MAGIC.byteLength;

/**
 * Passes an Arrow body on, a stream or a file split anywhere, and fails at its end unless it is complete: a stream up
 * to its end marker, a file up to its footer.
 *
 * Over HTTP/2 a client that disconnects may look like one that has finished: Node's client, for example, ends the
 * request before it resets it. A body without a length is complete only if it says so itself.
 *
 * @throws LanceError InvalidInput
 */
export async function* wholeBody(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let watch: Watch | undefined;
  /** The bytes so far, while they are too few to tell a file from a stream. */
  let start = Buffer.alloc(0);
  for await (const chunk of chunks) {
    if (watch === undefined) {
      const known = start.byteLength === 0 ? chunk : Buffer.concat([start, chunk]);
      if (known.byteLength >= FILE_MAGIC.byteLength) {
        watch = isIpcFile(known) ? createFileWatch() : createStreamWatch();
        watch.see(known);
      } else {
        // A copy: the reader may free the chunk.
        start = Buffer.from(known);
      }
    } else {
      watch.see(chunk);
    }
    yield chunk;
  }
  if (watch === undefined && start.byteLength === 0) throw emptyBody();
  if (watch?.isWhole() !== true) {
    throw new LanceError(
      "InvalidInput",
      "the body ends before its Arrow data does: without a content-length, an Arrow IPC stream needs its end marker and a file its footer",
    );
  }
}

/** Follows a body. */
interface Watch {
  see(chunk: Uint8Array): void;
  /** Whether the body may end here. */
  isWhole(): boolean;
}

function createFileWatch(): Watch {
  let tail: Buffer = Buffer.alloc(0);
  return {
    see(chunk) {
      const last = chunk.subarray(-FILE_TAIL_BYTES);
      tail = Buffer.concat([tail, last]).subarray(-FILE_TAIL_BYTES);
    },
    isWhole: () => tail.readInt32LE(0) > 0 && tail.subarray(4).equals(FILE_MAGIC),
  };
}

function createStreamWatch(): Watch {
  /** Received bytes of a message up to its body, and the length that is needed to proceed. */
  let head = new ArrivingBytes();
  let wanted = 4;
  /** Length of the message's body that has still to arrive. */
  let bodyLeft = 0;
  let [position, ended, begun] = [0, false, false];

  /** Reads the available part of a message's head and sets `wanted` to the length that is needed next. */
  function read(bytes: Buffer): void {
    const prefix = readPrefix(bytes, 0);
    if (prefix === undefined) {
      wanted = 8;
      return;
    }
    wanted = prefix.bytes + prefix.metadataLength;
    if (prefix.metadataLength === 0) ended = true;
    else if (bytes.byteLength === wanted) {
      begun = true;
      bodyLeft = parseMessageHead(bytes.subarray(prefix.bytes), position, MAX_UPLOAD_BUFFERS).bodyLength;
      position += wanted + bodyLeft;
      [head, wanted] = [new ArrivingBytes(), 4];
    }
  }
  return {
    see(chunk) {
      for (let at = 0; at < chunk.byteLength && !ended; ) {
        if (bodyLeft > 0) {
          const passed = Math.min(bodyLeft, chunk.byteLength - at);
          bodyLeft -= passed;
          at += passed;
          continue;
        }
        const piece = chunk.subarray(at, at + wanted - head.size);
        at += piece.byteLength;
        // A copy: the reader may free the chunk.
        head.push(Buffer.from(piece));
        if (head.size === wanted) read(head.whole());
      }
    },
    // Zeros from the start are not a stream that ends, but no stream at all.
    isWhole: () => ended && begun,
  };
}
