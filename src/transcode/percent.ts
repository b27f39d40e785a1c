import { LanceError } from "../namespace/errors.ts";

/**
 * Decodes the percent escapes of a part of a URL, once. A `+` stays a plus.
 *
 * @param what name of the text, for the error.
 * @throws LanceError InvalidInput for a bad escape, bytes that are not UTF-8, and characters outside ASCII.
 */
export function decodePercent(text: string, what: string): string {
  let escaped = false;
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index);
    if (code === 0x25) escaped = true;
    else if (code > 0x7e) throw new LanceError("InvalidInput", `${what} must be percent-encoded UTF-8`);
  }
  if (!escaped) return text;
  try {
    return decodeURIComponent(text);
  } catch (cause) {
    throw new LanceError("InvalidInput", `${what} must be percent-encoded UTF-8`, { cause });
  }
}

/** Decodes as {@link decodePercent}, with `+` as the form encoding's space. */
export function decodeForm(text: string, what: string): string {
  return decodePercent(text.includes("+") ? text.replaceAll("+", " ") : text, what);
}
