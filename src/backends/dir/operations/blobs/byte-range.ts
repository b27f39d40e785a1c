import { LanceError } from "../../../../namespace/errors.ts";

/** A range of bytes; `end` is not included. */
export interface ByteRange {
  readonly start: number;
  readonly end: number;
}

const SINGLE = /^bytes=(\d{0,15})-(\d{0,15})$/;

/**
 * Returns the range that the header `range` names (RFC 9110, section 14.2); undefined if there is none, or another
 * unit or several ranges, which a server may ignore.
 *
 * @param size number of bytes that there are
 * @throws LanceError RangeNotSatisfiable, if none of the bytes is in the range
 */
export function byteRange(header: string | undefined, size: number): ByteRange | undefined {
  const [, first = "", last = ""] = SINGLE.exec(header?.trim() ?? "") ?? [];
  if (first === "" && last === "") return undefined;
  if (first !== "" && last !== "" && Number(last) < Number(first)) return undefined;
  const start = first === "" ? Math.max(0, size - Number(last)) : Number(first);
  const end = first === "" || last === "" ? size : Math.min(size, Number(last) + 1);
  if (start < end) return { start, end };
  throw new LanceError("RangeNotSatisfiable", `no byte of the ${size} bytes is in the range ${header}`, {
    headers: { "content-range": `bytes */${size}` },
  });
}
