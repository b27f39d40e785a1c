import { type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";
import { LanceError } from "../namespace/errors.ts";
import type { Steps } from "../runtime/pace.ts";

/**
 * Size below which messages are not scanned, in bytes: decoding them takes a few milliseconds whatever they contain.
 */
export const SMALL_MESSAGE_BYTES = 32 * 1024;

/** Largest cost of decoding a message: about 50 ms. */
const MAX_COST = 1_000_000;

/** Costs of a nested message, of any other field, and of a byte of packed numbers. */
const COST = { message: 10, field: 5, packedByte: 0.2 } as const;

/** Cost of the fields that are scanned in a step, which takes less than a millisecond. */
const STEP_COST = 20_000;

/** Depth up to which protobuf-es decodes. */
const MAX_DEPTH = 100;

/** Largest size of a number of variable length, in bytes. */
const MAX_VARINT_BYTES = 10;

/** The fields of a message, by their numbers; other fields are skipped. */
type Plan = ReadonlyMap<number, Inner>;

interface Inner {
  /** Fields of the nested message; undefined for another field. */
  readonly plan: (() => Plan) | undefined;
  /** Form of a single value. */
  readonly wireType: WireType;
  /** Whether its values may also be packed. */
  readonly isPacked: boolean;
}

const plans = new WeakMap<DescMessage, Plan>();

/**
 * Scans a message in protobuf's binary form before it is decoded: two bytes may be a message of their own, and
 * decoding 16 MiB of those takes seconds and a gigabyte.
 *
 * The decoder reads a field in the form that its type has, whatever form the message declares, and reads values to their ends, also beyond the
 * end of what contains them. The scan refuses both, so that it counts the fields that the decoder sees. No message of this API has groups.
 *
 * The steps throw LanceError InvalidInput, if the message has too many fields or is malformed.
 */
export function* scanBinary(message: DescMessage, bytes: Uint8Array): Steps<void> {
  if (bytes.byteLength <= SMALL_MESSAGE_BYTES) return;
  let cost = 0;
  const reader = new BinaryReader(bytes);

  function scanField(plan: Plan, end: number, depth: number): void {
    const [number, wireType] = reader.tag();
    const field = plan.get(number);
    cost += COST.field;
    if (cost > MAX_COST) throw tooMuch();
    const isPacked = field?.isPacked === true && wireType === WireType.LengthDelimited;
    if (field !== undefined && field.wireType !== wireType && !isPacked) throw new RangeError("an odd form");
    if (wireType === WireType.LengthDelimited) scanContents(field, end, depth);
    else if (wireType === WireType.Varint) skipVarint();
    else if (wireType === WireType.Bit32 || wireType === WireType.Bit64) reader.skip(wireType);
    else throw new RangeError("a group");
    if (reader.pos > end) throw new RangeError("a field beyond its end");
  }
  function scanContents(field: Inner | undefined, end: number, depth: number): void {
    const length = reader.uint32();
    const next = reader.pos + length;
    if (next > end) throw new RangeError("a field beyond its end");
    if (field?.plan !== undefined) {
      cost += COST.message;
      if (depth < MAX_DEPTH) {
        const inner = field.plan();
        while (reader.pos < next) scanField(inner, next, depth + 1);
      }
    } else if (field?.isPacked) {
      cost += length * COST.packedByte;
      if (!endsWithValue(field.wireType, length, next)) throw new RangeError("a value beyond its end");
    }
    reader.pos = next;
  }
  function endsWithValue(wireType: WireType, length: number, end: number): boolean {
    if (wireType === WireType.Varint) return length === 0 || (bytes[end - 1] as number) < 0x80;
    return length % (wireType === WireType.Bit32 ? 4 : 8) === 0;
  }
  function skipVarint(): void {
    const start = reader.pos;
    while ((bytes[reader.pos++] as number) >= 0x80)
      if (reader.pos - start === MAX_VARINT_BYTES) throw new RangeError("a number without an end");
  }
  const plan = planOf(message);
  let pauseAt = STEP_COST;
  try {
    while (reader.pos < bytes.byteLength) {
      scanField(plan, bytes.byteLength, 0);
      if (cost < pauseAt) continue;
      pauseAt = cost + STEP_COST;
      yield;
    }
  } catch (cause) {
    if (cause instanceof LanceError) throw cause;
    throw new LanceError("InvalidInput", `a message is not a valid ${message.typeName}`, { cause });
  }
}

function planOf(message: DescMessage): Plan {
  let plan = plans.get(message);
  if (plan === undefined) {
    plan = new Map(message.fields.map((field) => [field.number, innerOf(field)]));
    plans.set(message, plan);
  }
  return plan;
}

function innerOf(field: DescField): Inner {
  const { message, scalar } = field;
  const plan = message && (() => planOf(message));
  const value = {
    plan,
    wireType: plan === undefined ? wireTypeOf(scalar) : WireType.LengthDelimited,
    isPacked: false,
  };
  if (field.fieldKind !== "map")
    return { ...value, isPacked: field.fieldKind === "list" && value.wireType !== WireType.LengthDelimited };
  // An entry is a message of a key and a value.
  const key = { plan: undefined, wireType: wireTypeOf(field.mapKey), isPacked: false };
  const entry: Plan = new Map([
    [1, key],
    [2, value],
  ]);
  return { plan: () => entry, wireType: WireType.LengthDelimited, isPacked: false };
}

/** Returns the form of a scalar's values, or of an enum's. */
function wireTypeOf(type: ScalarType | undefined): WireType {
  switch (type) {
    case ScalarType.STRING:
    case ScalarType.BYTES:
      return WireType.LengthDelimited;
    case ScalarType.FLOAT:
    case ScalarType.FIXED32:
    case ScalarType.SFIXED32:
      return WireType.Bit32;
    case ScalarType.DOUBLE:
    case ScalarType.FIXED64:
    case ScalarType.SFIXED64:
      return WireType.Bit64;
    default:
      return WireType.Varint;
  }
}

function tooMuch(): LanceError {
  return new LanceError(
    "InvalidInput",
    `a message has too much in it: ${MAX_COST / COST.field} fields and items are the most`,
  );
}
