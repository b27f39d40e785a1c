// Texts of values that Arrow has no type for, as DuckDB writes them.

/** Returns the text of a UUID, which is held as an integer of 128 bits whose first bit is inverted. */
export function uuidText(data: DataView, at: number): string {
  const high = BigInt.asUintN(64, data.getBigUint64(at + 8, true) ^ (1n << 63n));
  const digits =
    high.toString(16).padStart(16, "0") + data.getBigUint64(at, true).toString(16).padStart(16, "0");
  return digits.replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}

/** Returns the digits of bits, whose first byte is the number of bits that fill the second one up. */
export function bitText(bytes: Uint8Array): string {
  const digits = Array.from(bytes.subarray(1), (byte) => byte.toString(2).padStart(8, "0")).join("");
  return digits.slice(bytes[0]);
}

/** Largest offset of a time zone, in seconds; offsets are held as their distance from it. */
const MAX_OFFSET = 16 * 60 * 60 - 1;

/** Returns the text of a time with a time zone, which is held as 40 bits of microseconds and 24 of the offset. */
export function timeWithZoneText(bits: bigint): string {
  const micros = bits >> 24n;
  const offset = MAX_OFFSET - Number(bits & 0xff_ffffn);
  const fraction = (micros % 1_000_000n).toString().padStart(6, "0").replace(/0+$/, "");
  const clock = clockText(Number(micros / 1_000_000n), true);
  const zone = Math.abs(offset);
  return `${clock}${fraction === "" ? "" : `.${fraction}`}${offset < 0 ? "-" : "+"}${clockText(zone, false)}`;
}

function clockText(seconds: number, isWhole: boolean): string {
  const parts = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60];
  const needed = isWhole || parts[2] !== 0 ? 3 : parts[1] !== 0 ? 2 : 1;
  return parts
    .slice(0, needed)
    .map((part) => String(part).padStart(2, "0"))
    .join(":");
}
