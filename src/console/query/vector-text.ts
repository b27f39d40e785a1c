import { vectorNumber } from "../rows/cells.ts";

/**
 * Reads the numbers of a pasted vector: with or without brackets, separated by commas, semicolons, spaces or lines.
 *
 * @throws Error that says which part is not a number.
 */
export function parseVector(text: string): number[] {
  const parts = text
    .replace(/^[\s[({]+|[\s\])}]+$/g, "")
    .split(/[\s,;]+/)
    .filter((part) => part !== "");
  return parts.map((part) => {
    const value = Number(part);
    if (!Number.isFinite(value)) throw new Error(`“${part.slice(0, 40)}” is not a number`);
    return value;
  });
}

/** Writes the numbers of a vector of a row, with all their digits. */
export function vectorText(values: ArrayLike<number>): string {
  return Array.from(values, (value) => vectorNumber(value, values instanceof Float32Array)).join(", ");
}
