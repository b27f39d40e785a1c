import type { DescField, DescMessage } from "@bufbuild/protobuf";
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

/** The relevant fields of a message, by their numbers; other fields are skipped. */
type Plan = ReadonlyMap<number, Inner>;

interface Inner {
  /** Fields of the nested message; undefined for another field. */
  readonly plan: (() => Plan) | undefined;
  readonly isPacked: boolean;
}

const plans = new WeakMap<DescMessage, Plan>();

/**
 * Scans a message in protobuf's binary form before it is decoded: two bytes may be a message of their own, and
 * decoding 16 MiB of those takes seconds and a gigabyte. It leaves malformed messages to the decoder.
 *
 * The steps throw LanceError InvalidInput, if the message has too many fields.
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
    if (wireType !== WireType.LengthDelimited || field === undefined) {
      reader.skip(wireType, number);
      return;
    }
    const length = reader.uint32();
    const next = reader.pos + length;
    if (field.plan !== undefined) {
      cost += COST.message;
      if (depth < MAX_DEPTH && next <= end) {
        const inner = field.plan();
        while (reader.pos < next) scanField(inner, next, depth + 1);
      }
    } else if (field.isPacked) {
      cost += length * COST.packedByte;
    }
    reader.pos = next;
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
  } catch (thrown) {
    if (thrown instanceof LanceError) throw thrown;
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
  const { message } = field;
  const plan = message && (() => planOf(message));
  if (field.fieldKind !== "map") return { plan, isPacked: field.fieldKind === "list" && field.packed };
  // An entry is a message of a key and a value.
  const entry: Plan = new Map([[2, { plan, isPacked: false }]]);
  return { plan: () => entry, isPacked: false };
}

function tooMuch(): LanceError {
  return new LanceError(
    "InvalidInput",
    `a message has too much in it: ${MAX_COST / COST.field} fields and items are the most`,
  );
}
