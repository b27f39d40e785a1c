import type { DataType } from "apache-arrow";
import { LanceError } from "../../namespace/errors.ts";

type Arrow = typeof import("apache-arrow");

/** Types without anything to choose, by their names. */
const PLAIN = {
  string: ({ Utf8 }) => new Utf8(),
  large_string: ({ LargeUtf8 }) => new LargeUtf8(),
  bool: ({ Bool }) => new Bool(),
  int8: ({ Int8 }) => new Int8(),
  int16: ({ Int16 }) => new Int16(),
  int32: ({ Int32 }) => new Int32(),
  int64: ({ Int64 }) => new Int64(),
  uint8: ({ Uint8 }) => new Uint8(),
  uint16: ({ Uint16 }) => new Uint16(),
  uint32: ({ Uint32 }) => new Uint32(),
  uint64: ({ Uint64 }) => new Uint64(),
  float16: ({ Float16 }) => new Float16(),
  float32: ({ Float32 }) => new Float32(),
  float64: ({ Float64 }) => new Float64(),
  binary: ({ Binary }) => new Binary(),
  large_binary: ({ LargeBinary }) => new LargeBinary(),
  date32: ({ DateDay }) => new DateDay(),
  date64: ({ DateMillisecond }) => new DateMillisecond(),
} as const satisfies Readonly<Record<string, (arrow: Arrow) => DataType>>;

const UNITS: Readonly<Record<string, 0 | 1 | 2 | 3>> = { s: 0, ms: 1, us: 2, ns: 3 };

/** Types with something to choose, by their names. */
const CHOSEN: Readonly<Record<string, (arrow: Arrow, parts: readonly string[]) => DataType | undefined>> = {
  decimal: (arrow, [precision = "", scale = "0"]) => {
    const [digits, after] = [Number(precision), Number(scale)];
    const isValid = Number.isInteger(digits) && Number.isInteger(after) && after >= 0 && after <= digits;
    if (!isValid || digits < 1 || digits > 76) return undefined;
    return new arrow.Decimal(after, digits, digits <= 38 ? 128 : 256);
  },
  timestamp: (arrow, [unit = "", zone]) => {
    const found = UNITS[unit];
    return found === undefined ? undefined : new arrow.Timestamp(found, zone ?? null);
  },
  time: (arrow, [unit = ""]) => {
    const found = UNITS[unit];
    return found === undefined ? undefined : new arrow.Time(found, found < 2 ? 32 : 64);
  },
  duration: (arrow, [unit = ""]) => {
    const found = UNITS[unit];
    return found === undefined ? undefined : new arrow.Duration(found);
  },
  list: (arrow, [item = ""]) => new arrow.List(new arrow.Field("item", typeOfName(arrow, item), true)),
  vector: (arrow, [length = "", item = "float32"]) => {
    if (!/^[1-9]\d{0,8}$/.test(length)) return undefined;
    return new arrow.FixedSizeList(Number(length), new arrow.Field("item", typeOfName(arrow, item), true));
  },
};

/** Names of types, for people to choose from. */
export const TYPE_NAMES = [
  ...Object.keys(PLAIN),
  ...["decimal(38,10)", "timestamp(us)", "timestamp(us,UTC)", "time(us)", "duration(us)"],
  ...["list(string)", "vector(3)", "vector(3,float64)"],
];

/**
 * Returns the type of a name such as `int64`, `decimal(20,4)`, `timestamp(us,UTC)` or `vector(768)`.
 *
 * @throws LanceError InvalidInput for other texts.
 */
export function typeOfName(arrow: Arrow, name: string): DataType {
  const [, word = "", parts] = /^\s*(\w+)\s*(?:\((.*)\))?\s*$/.exec(name) ?? [];
  const plain = (PLAIN as Readonly<Record<string, (arrow: Arrow) => DataType>>)[word];
  if (plain !== undefined && parts === undefined) return plain(arrow);
  const type = CHOSEN[word]?.(
    arrow,
    (parts ?? "").split(",").map((part) => part.trim()),
  );
  if (type !== undefined) return type;
  const text = `${JSON.stringify(name)} is not the name of a type, such as ${TYPE_NAMES.join(", ")}`;
  throw new LanceError("InvalidInput", text);
}
