import { readSync, writeSync } from "node:fs";
import type { SqlColumn } from "../column-types.ts";

/** A message between the gateway and a process of the engine: a header in JSON, and bytes. */
export interface Frame<T = FrameHeader> {
  readonly header: T;
  readonly body: Uint8Array;
}

/** Header of a frame. */
interface FrameHeader {
  readonly kind: string;
}

/** Size of the lengths in front of a frame: of all that follows, and of its header. */
export const LENGTHS_BYTES = 8;

/** File descriptor by which a process of the engine is connected. */
const CONNECTION = 3;

const EMPTY = new Uint8Array();

/** Encodes a frame as pieces. */
export function encodeFrame(header: object, body: Uint8Array = EMPTY): Uint8Array[] {
  const text = Buffer.from(JSON.stringify(header));
  const lengths = Buffer.alloc(LENGTHS_BYTES);
  lengths.writeUInt32LE(text.byteLength + body.byteLength + 4, 0);
  lengths.writeUInt32LE(text.byteLength, 4);
  return body.byteLength === 0 ? [Buffer.concat([lengths, text])] : [Buffer.concat([lengths, text]), body];
}

/** Decodes what follows the lengths of a frame. */
export function decodeFrame<T>(content: Uint8Array, headerBytes: number): Frame<T> {
  const text = Buffer.from(content.buffer, content.byteOffset, headerBytes).toString();
  return { header: JSON.parse(text) as T, body: content.subarray(headerBytes) };
}

/** Reads the next frame, and waits for it; undefined at the end of the connection. */
export function readFrame<T>(): Frame<T> | undefined {
  const lengths = readBytes(LENGTHS_BYTES);
  if (lengths === undefined) return undefined;
  const content = readBytes(lengths.readUInt32LE(0) - 4);
  return content === undefined ? undefined : decodeFrame<T>(content, lengths.readUInt32LE(4));
}

/** How long a frame waits for the next one, in milliseconds. */
const HELD_MS = 1;

/** Pieces of up to so many bytes are joined to one write. */
const JOINED_BYTES = 65_536;

/** Pieces of the frames that wait. */
const held: Uint8Array[] = [];
let timer: NodeJS.Timeout | undefined;

/** Keeps a frame for the next one, which often follows at once: the gateway then wakes up once for both. */
export function holdFrame(header: object, body?: Uint8Array): void {
  held.push(...encodeFrame(header, body));
  timer ??= setTimeout(writeHeld, HELD_MS);
}

/** Writes a frame behind those that wait, and waits until the gateway takes it. */
export function writeFrame(header: object, body?: Uint8Array): void {
  held.push(...encodeFrame(header, body));
  writeHeld();
}

/** Writes the frames that wait. */
export function writeHeld(): void {
  clearTimeout(timer);
  timer = undefined;
  const pieces = held.splice(0);
  const length = pieces.reduce((sum, { byteLength }) => sum + byteLength, 0);
  for (const piece of length > JOINED_BYTES ? pieces : [Buffer.concat(pieces)])
    for (let at = 0; at < piece.byteLength; ) at += whenReady(() => writeSync(CONNECTION, piece, at));
}

function readBytes(count: number): Buffer | undefined {
  const bytes = Buffer.allocUnsafeSlow(count);
  for (let at = 0; at < count; ) {
    const read = whenReady(() => readSync(CONNECTION, bytes, at, count - at, null));
    if (read === 0) return undefined;
    at += read;
  }
  return bytes;
}

const PAUSE = new Int32Array(new SharedArrayBuffer(4));

/** Repeats what a connection without blocking is not ready for. */
function whenReady(work: () => number): number {
  for (;;) {
    try {
      return work();
    } catch (thrown) {
      if ((thrown as NodeJS.ErrnoException).code !== "EAGAIN") throw thrown;
      Atomics.wait(PAUSE, 0, 0, 1);
    }
  }
}

/** Bounds of a process, which hold for every statement that it runs. */
export interface ProcessBounds {
  readonly memoryMib: number;
  /** Memory of the tables that the process keeps, besides that of a statement. */
  readonly keptMib: number;
  readonly threads: number;
}

/** A table of a statement for its process. */
export interface ScannedTable {
  /** Name for errors. */
  readonly name: string;
  readonly columns: readonly SqlColumn[];
  readonly rows: number | undefined;
}

/** The tables of a statement. */
export interface StatementTables {
  readonly tables: readonly ScannedTable[];
  /** For each scan of the statement, in the order of the scans' numbers: the position of its table. */
  readonly places: readonly number[];
}

/** Requests to a process; each has one reply, and `run` has batches before it. */
export type Request =
  /** The body is a statement; the reply's body is its tree. */
  | { readonly kind: "parse" }
  /** The body is a tree; the reply's body is the text that the process makes of it, and the tree of that text. */
  | { readonly kind: "write" }
  /** Binds the text in the body under an id; the reply's body has the schemas of the result and of the parameters. */
  | ({
      readonly kind: "bind";
      readonly id: number;
      /** Id of a statement that the process forgets. */
      readonly forgotten: number | undefined;
    } & StatementTables)
  /** Keeps the rows of a table under a name; the reply's body is the memory of all tables that are kept, in bytes as text. */
  | { readonly kind: "keep"; readonly name: string; readonly table: ScannedTable }
  /** Drops tables that are kept; the reply is that of `keep`. */
  | { readonly kind: "drop"; readonly names: readonly string[] }
  /** Runs what is bound under an id; the body is an IPC stream of the parameters, or empty. */
  | { readonly kind: "run"; readonly id: number; readonly maxRows: number | undefined };

/** Requests of a process while it runs a statement. */
export type ScanRequest =
  | {
      readonly kind: "open";
      readonly scan: number;
      readonly place: number;
      readonly columns: readonly string[];
    }
  | { readonly kind: "next"; readonly scan: number }
  | { readonly kind: "leave"; readonly scan: number };

/** What a process is told about a scan: bytes in the body, the end, or that reading failed. */
export type ScanReply = { readonly kind: "piece" } | { readonly kind: "end" } | { readonly kind: "failed" };

/** Replies of a process. */
export type Reply =
  /** The body has two parts, of which the first has so many bytes. */
  | { readonly kind: "done"; readonly firstBytes?: number }
  /** The body is an IPC message: the schema, or a batch. */
  | { readonly kind: "message" }
  /** The statement fails; with `bound`, by a bound. */
  | {
      readonly kind: "error";
      readonly message: string;
      readonly type?: string;
      readonly bound?: "memory" | "rows";
    };
