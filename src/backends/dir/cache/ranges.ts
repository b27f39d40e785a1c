/** The part of an object that a request asks for, as it says it. */
export type AskedRange =
  | { readonly start: number; readonly last: number | undefined }
  /** The last bytes. */
  | { readonly suffix: number };

/** Parses a Range header; undefined for what is not a single range of bytes. */
export function parseRange(text: string): AskedRange | undefined {
  const [, first = "", last = ""] = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(text) ?? [];
  if (first === "") return last === "" || Number(last) === 0 ? undefined : { suffix: Number(last) };
  if (last !== "" && Number(last) < Number(first)) return undefined;
  return { start: Number(first), last: last === "" ? undefined : Number(last) };
}

/** Returns the range in an object of a size; undefined if it has none of those bytes. */
export function rangeWithin(
  range: AskedRange | undefined,
  size: number,
): { readonly start: number; readonly end: number } | undefined {
  if (range === undefined) return { start: 0, end: size };
  if ("suffix" in range)
    return size === 0 ? undefined : { start: Math.max(0, size - range.suffix), end: size };
  if (range.start >= size) return undefined;
  return { start: range.start, end: Math.min(size, (range.last ?? size - 1) + 1) };
}

/** Parses the Content-Range header of a part; undefined if it says no such thing. */
export function parseContentRange(
  text: string | undefined,
): { readonly start: number; readonly end: number; readonly size: number } | undefined {
  const [, start, last, size] = /^bytes (\d+)-(\d+)\/(\d+)$/.exec(text ?? "") ?? [];
  if (start === undefined) return undefined;
  return { start: Number(start), end: Number(last) + 1, size: Number(size) };
}
