import { LanceError } from "../../namespace/errors.ts";

/** Encodings that the first bytes of a text name. */
const MARKS: readonly (readonly [encoding: string, bytes: readonly number[]])[] = [
  ["utf-32le", [0xff, 0xfe, 0, 0]],
  ["utf-32be", [0, 0, 0xfe, 0xff]],
  ["utf-8", [0xef, 0xbb, 0xbf]],
  ["utf-16le", [0xff, 0xfe]],
  ["utf-16be", [0xfe, 0xff]],
];
const LONGEST_MARK = 4;
/** Most bytes of a line in an encoding whose characters can be told apart at line breaks alone. */
const LONGEST_LINE = 64 * 1024 * 1024;
const LINE_FEED = 0x0a;

/** Name of an encoding as the platform has it. */
export function encodingOf(label: string): string {
  try {
    return new TextDecoder(label).encoding;
  } catch {
    throw new LanceError("InvalidInput", `unknown encoding ${JSON.stringify(label)}`);
  }
}

/**
 * Decodes a text without changing a character, and removes a byte order mark.
 *
 * @param label encoding of the text, as the WHATWG names it. Default: the one of the byte order mark, or else UTF-8
 * @throws LanceError InvalidInput that says where, for bytes that the encoding does not have.
 */
export async function* decoded(bytes: AsyncIterable<Uint8Array>, label?: string): AsyncIterable<string> {
  const chosen = label === undefined ? undefined : encodingOf(label);
  let encoding = "";
  let decode: ReturnType<typeof createDecoder> | undefined;
  let head = new Uint8Array();
  async function* marked(): AsyncIterable<Uint8Array> {
    for await (const piece of bytes) {
      if (decode === undefined) {
        head = joined(head, piece);
        if (head.byteLength >= LONGEST_MARK) yield head;
      } else yield piece;
    }
    if (decode === undefined) yield head;
  }
  for await (const piece of marked()) {
    if (decode === undefined) {
      const mark = markOf(piece);
      encoding = encodingFor(mark?.[0], chosen);
      const length = mark?.[1].length ?? 0;
      decode = createDecoder(encoding, label === undefined, length);
      yield* decode(piece.subarray(length));
    } else yield* decode(piece);
  }
  if (decode !== undefined) yield* decode();
}

function markOf(bytes: Uint8Array) {
  return MARKS.find(([, mark]) => mark.every((byte, at) => bytes[at] === byte));
}

function encodingFor(marked: string | undefined, chosen: string | undefined): string {
  if (marked?.startsWith("utf-32"))
    throw new LanceError("InvalidInput", "line 1, column 1: the text is in UTF-32, which is not supported");
  if (marked !== undefined && chosen !== undefined && marked !== chosen) {
    const text = `line 1, column 1: the text begins with the byte order mark of ${marked}, and the chosen encoding is ${chosen}`;
    throw new LanceError("InvalidInput", text);
  }
  return chosen ?? marked ?? "utf-8";
}

/** Creates a function that decodes bytes; without bytes it decodes the rest. */
function createDecoder(encoding: string, isAssumed: boolean, markLength: number) {
  let rest = new Uint8Array();
  let offset = markLength;
  let line = 1;
  let column = 1;
  function advance(text: string): void {
    const breaks = text.match(/\r\n|\r(?!$)|\n/g)?.length ?? 0;
    line += breaks;
    const last = Math.max(text.lastIndexOf("\n"), text.lastIndexOf("\r", text.length - 2));
    column = last < 0 ? column + text.length : text.length - last;
  }
  return function* (piece?: Uint8Array): Iterable<string> {
    const bytes = joined(rest, piece ?? new Uint8Array());
    const end = piece === undefined ? bytes.byteLength : boundaryOf(bytes, encoding);
    rest = bytes.slice(end);
    if (rest.byteLength > LONGEST_LINE)
      throw new LanceError("InvalidInput", `line ${line} is longer than 64 MiB`);
    const whole = bytes.subarray(0, end);
    const text = attempt(encoding, whole, false);
    if (text === undefined) {
      const prefix = whole.subarray(0, validLength(encoding, whole));
      // Characters that are cut off by what is wrong belong to it.
      const valid = encoding.startsWith("utf-") ? boundaryOf(prefix, encoding) : prefix.byteLength;
      advance(attempt(encoding, prefix, true) ?? "");
      const hint = isAssumed ? "; choose the encoding that it has" : "";
      throw new LanceError(
        "InvalidInput",
        `line ${line}, column ${column} (byte ${offset + valid}): the text is not in ${encoding.toUpperCase()}${hint}`,
      );
    }
    offset += end;
    advance(text);
    if (text !== "") yield text;
  };
}

/** Decodes bytes that begin at a character; undefined if they are none of the encoding. */
function attempt(encoding: string, bytes: Uint8Array, isOpen: boolean): string | undefined {
  try {
    return new TextDecoder(encoding, { fatal: true, ignoreBOM: true }).decode(bytes, { stream: isOpen });
  } catch {
    return undefined;
  }
}

/** Returns the number of bytes before the first ones that are not of the encoding. */
function validLength(encoding: string, bytes: Uint8Array): number {
  let [low, high] = [0, bytes.byteLength];
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (attempt(encoding, bytes.subarray(0, middle), true) === undefined) high = middle - 1;
    else low = middle;
  }
  return low;
}

/** Returns an index of bytes at which a character begins, as near to the end as the encoding tells. */
function boundaryOf(bytes: Uint8Array, encoding: string): number {
  const { length } = bytes;
  if (encoding === "utf-8") return utf8Boundary(bytes);
  if (!encoding.startsWith("utf-16")) return bytes.lastIndexOf(LINE_FEED) + 1;
  const even = length - (length % 2);
  const high = bytes[encoding === "utf-16le" ? even - 1 : even - 2] ?? 0;
  // The second half of a pair follows.
  return high >= 0xd8 && high < 0xdc ? even - 2 : even;
}

function utf8Boundary(bytes: Uint8Array): number {
  const { length } = bytes;
  for (let back = 1; back <= Math.min(3, length); back++) {
    const byte = bytes[length - back] ?? 0;
    if (byte < 0x80) return length;
    if (byte < 0xc0) continue;
    const size = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2;
    return size > back ? length - back : length;
  }
  return length;
}

function joined(first: Uint8Array, second: Uint8Array): Uint8Array<ArrayBuffer> {
  if (first.byteLength === 0) return second as Uint8Array<ArrayBuffer>;
  const both = new Uint8Array(first.byteLength + second.byteLength);
  both.set(first);
  both.set(second, first.byteLength);
  return both;
}
