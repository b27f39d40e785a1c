import { randomBytes } from "node:crypto";

/** Draws digits and small letters of five bits each, so that drawn names differ where case is ignored, too. */
export function drawCharacters(count: number): string {
  return Array.from(randomBytes(count), (byte) => (byte & 31).toString(32)).join("");
}
