import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import {
  Bool,
  type DataType,
  Decimal,
  Dictionary,
  Field,
  FixedSizeBinary,
  FixedSizeList,
  Float32,
  Int8,
  Int32,
  Int64,
  List,
  Map_,
  makeData,
  Null,
  Schema,
  SparseUnion,
  Struct,
  Table,
  TimestampMicrosecond,
  tableToIPC,
  Utf8,
  Vector,
  vectorFromArray,
} from "apache-arrow";
import { parseMessageHead, readPrefix } from "../../src/arrow/ipc/message.ts";
import { PYARROW_STREAMS } from "../fixtures/arrow/pyarrow-streams.ts";
import type { Random } from "./random.ts";

/** A body that a server accepts, with an `id` of 32 or 64 bits as the key of merges. */
export interface ArrowBody {
  readonly name: string;
  readonly bytes: Buffer;
}

/**
 * Streams of two batches, written by pyarrow: nested columns, a dictionary, a view and a decimal, with compressed
 * buffers. And streams of a batch with types that apache-arrow does not write, or seldom: views, lists of nulls, nested lists of fixed size,
 * values of no width, dictionaries in lists, structs and maps, and decimals of 256 bits.
 */
const STREAMS = join(import.meta.dirname, "arrow-streams");

const ROWS = 40;

const numbers = Array.from({ length: ROWS }, (_, i) => i);
const field = (name: string, type: DataType) => new Field(name, type, true);
const column = <T>(type: DataType, value: (i: number) => T) => vectorFromArray(numbers.map(value), type);

const vectorType = new FixedSizeList(4, field("item", new Float32()));
const pointType = new Struct([field("x", new Int32()), field("label", new Utf8())]);
const listType = new List(field("item", new Int64()));
const mapType = new Map_(
  new Field(
    "entries",
    new Struct<{ key: Utf8; value: Int32 }>([
      new Field("key", new Utf8(), false),
      new Field("value", new Int32(), true),
    ]),
    false,
  ),
);
const unionType = new SparseUnion([0, 1], [field("a", new Int32()), field("b", new Utf8())]);

/** The columns of each body, in addition to its `id`. */
const COLUMNS: Readonly<Record<string, () => Record<string, Vector>>> = {
  plain: () => ({
    text: column(new Utf8(), (i) => (i % 7 === 0 ? null : `text ${i}`)),
    flag: column(new Bool(), (i) => i % 3 === 0),
    at: column(new TimestampMicrosecond("UTC"), (i) => i * 1000),
    price: column(new Decimal(2, 20, 128), (i) => Uint32Array.of(i, 0, 0, 0)),
    word: column(new FixedSizeBinary(4), (i) => Uint8Array.of(i, 1, 2, 3)),
  }),
  nested: () => ({
    vector: column(vectorType, (i) => [i, 0, 1, 2]),
    point: column(pointType, (i) => ({ x: i, label: `p${i}` })),
    list: column(listType, (i) => numbers.slice(0, i % 5).map(BigInt)),
    points: column(new List(field("item", pointType)), (i) => [{ x: i, label: "q" }]),
  }),
  dictionary: () => ({
    kind: column(new Dictionary(new Utf8(), new Int8(), 1), (i) => `kind ${i % 4}`),
    group: column(new Dictionary(new Utf8(), new Int32(), 2), (i) => `group ${i % 9}`),
  }),
  empty: () => ({ nothing: column(new Null(), () => null) }),
  map: () => ({ tags: column(mapType, (i) => new Map([[`k${i}`, i]])) }),
  union: () => {
    const children = [column(new Int32(), (i) => i), column(new Utf8(), (i) => `b${i}`)];
    const data = makeData({
      type: unionType,
      length: ROWS,
      typeIds: Int8Array.from(numbers, (i) => i % 2),
      children: children.map((child) => child.data[0] as never),
    });
    return { either: new Vector([data]) };
  },
};

/** Returns bodies of many schemas, as streams and as files, with compressed and uncompressed buffers. */
export function arrowBodies(): ArrowBody[] {
  const made = Object.entries(COLUMNS).flatMap(([name, columns]) => {
    const vectors: Record<string, Vector> = { id: column(new Int32(), (i) => i), ...columns() };
    const schema = new Schema(Object.entries(vectors).map(([each, { type }]) => field(each, type)));
    const table = new Table(schema, vectors as never);
    return (["stream", "file"] as const).map((form) => ({
      name: `${name} ${form}`,
      bytes: Buffer.from(tableToIPC(table, form)),
    }));
  });
  const written = Object.entries(PYARROW_STREAMS).map(([name, base64]) => ({
    name: `${name} stream`,
    bytes: Buffer.from(base64, "base64"),
  }));
  const nested = readdirSync(STREAMS).map((name) => ({ name, bytes: readFileSync(join(STREAMS, name)) }));
  return [...made, ...written, ...nested];
}

/** Values of lengths, counts and offsets that often cause faults. */
const EDGES = [
  0n,
  1n,
  2n,
  7n,
  8n,
  255n,
  65_536n,
  2n ** 24n,
  2n ** 31n - 1n,
  2n ** 31n,
  2n ** 32n - 1n,
] as const;
const WIDE_EDGES = [2n ** 40n, 2n ** 53n - 1n, 2n ** 62n, 2n ** 63n - 1n, 2n ** 63n, 2n ** 64n - 1n] as const;

type Mutation = (body: Buffer, random: Random, bodies: readonly ArrowBody[]) => Buffer;

const MUTATIONS: readonly Mutation[] = [
  function flipBits(body, random) {
    const copy = Buffer.from(body);
    for (let left = 1 + random.below(8); left > 0; left--) flip(copy, random.below(copy.byteLength), random);
    return copy;
  },
  function flipBitsOfMetadata(body, random) {
    const copy = Buffer.from(body);
    const { from, to } = random.pick(metadataOf(body));
    for (let left = 1 + random.below(4); left > 0; left--) flip(copy, from + random.below(to - from), random);
    return copy;
  },
  function flipBitsOfValues(body, random) {
    const copy = Buffer.from(body);
    const whole = { from: 0, to: body.byteLength };
    const { from, to } = random.pick([whole, ...walk(body).map(({ values }) => values)]);
    if (to > from) {
      for (let left = 1 + random.below(4); left > 0; left--)
        flip(copy, from + random.below(to - from), random);
    }
    return copy;
  },
  function editNumber(body, random) {
    const copy = Buffer.from(body);
    const { from, to } = random.pick(metadataOf(body));
    const at = from + random.below(Math.max(1, (to - from) >> 2)) * 4;
    if (at + 8 > copy.byteLength) return copy;
    if (random.below(2) === 0) copy.writeUInt32LE(Number(random.pick(EDGES)), at);
    else copy.writeBigUInt64LE(random.pick([...EDGES, ...WIDE_EDGES]), at);
    return copy;
  },
  function editValue(body, random) {
    const copy = Buffer.from(body);
    const at = random.below(Math.max(1, (copy.byteLength - 8) >> 3)) * 8;
    if (at + 8 > copy.byteLength) return copy;
    copy.writeBigUInt64LE(random.pick([...EDGES, ...WIDE_EDGES]), at);
    return copy;
  },
  function truncate(body, random) {
    return body.subarray(0, 1 + random.below(body.byteLength));
  },
  function dropRange(body, random) {
    const at = random.below(body.byteLength);
    return Buffer.concat([body.subarray(0, at), body.subarray(at + 1 + random.below(64))]);
  },
  function splice(body, random, bodies) {
    const { bytes } = random.pick(bodies);
    const from = random.below(bytes.byteLength);
    const piece = bytes.subarray(from, from + 8 + random.below(256));
    const at = random.below(body.byteLength) & ~7;
    const behind = random.below(2) === 0 ? at : at + piece.byteLength;
    return Buffer.concat([body.subarray(0, at), piece, body.subarray(behind)]);
  },
  function swapMessages(body, random, bodies) {
    const [own, other] = [messagesOf(body), messagesOf(random.pick(bodies).bytes)];
    if (own.length === 0 || other.length === 0) return body;
    const mixed = [...own];
    const at = random.below(own.length);
    mixed.splice(at, random.below(2), random.pick(random.below(2) === 0 ? other : own));
    return Buffer.concat(mixed);
  },
  function swapMetadata(body, random, bodies) {
    const other = random.pick(bodies).bytes;
    const [mine, theirs] = [random.pick(metadataOf(body)), random.pick(metadataOf(other))];
    const copy = Buffer.from(body);
    other.copy(copy, mine.from, theirs.from, Math.min(theirs.to, theirs.from + mine.to - mine.from));
    return copy;
  },
];

/** Makes a nearly valid body from a valid one, and describes the change. */
export function mutate({ name, bytes }: ArrowBody, bodies: readonly ArrowBody[], random: Random): ArrowBody {
  let [label, mutated] = [name, bytes];
  for (let left = 1 + random.below(2); left > 0 && mutated.byteLength > 16; left--) {
    const mutation = random.pick(MUTATIONS);
    mutated = mutation(mutated, random, bodies);
    label += `, ${mutation.name}`;
  }
  return { name: label, bytes: mutated };
}

function flip(bytes: Buffer, at: number, random: Random): void {
  bytes[at] = (bytes[at] as number) ^ (1 << random.below(8));
}

interface Range {
  readonly from: number;
  readonly to: number;
}

/** Returns the ranges of the messages' metadata, including a file's footer, or the whole body if it is unreadable. */
function metadataOf(bytes: Buffer): Range[] {
  const ranges = walk(bytes).map(({ metadata }) => metadata);
  if (isFile(bytes)) {
    const end = bytes.byteLength - 10;
    ranges.push({ from: Math.max(0, end - Math.max(0, bytes.readInt32LE(end))), to: end });
  }
  const found = ranges.filter(({ from, to }) => to > from);
  return found.length > 0 ? found : [{ from: 0, to: bytes.byteLength }];
}

function messagesOf(bytes: Buffer): Buffer[] {
  return walk(bytes).map(({ whole }) => bytes.subarray(whole.from, whole.to));
}

interface FoundMessage {
  readonly whole: Range;
  readonly metadata: Range;
  readonly values: Range;
}

function walk(bytes: Buffer): FoundMessage[] {
  const found: FoundMessage[] = [];
  let from = isFile(bytes) ? 8 : 0;
  try {
    for (;;) {
      const prefix = readPrefix(bytes, from);
      if (prefix === undefined || prefix.metadataLength === 0) break;
      const metadata = { from: from + prefix.bytes, to: from + prefix.bytes + prefix.metadataLength };
      const { bodyLength } = parseMessageHead(bytes.subarray(metadata.from, metadata.to), from);
      const whole = { from, to: metadata.to + bodyLength };
      if (whole.to > bytes.byteLength) break;
      found.push({ whole, metadata, values: { from: metadata.to, to: whole.to } });
      from = whole.to;
    }
  } catch {
    // Earlier mutations may make the body unreadable from here on.
  }
  return found;
}

function isFile(bytes: Buffer): boolean {
  return bytes.byteLength > 24 && bytes.toString("latin1", 0, 6) === "ARROW1";
}
