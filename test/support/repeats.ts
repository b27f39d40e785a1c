import { vi } from "vitest";

/** Time limit of a test or hook in a usual run, in milliseconds; equal to the one in vitest.config.ts. */
const TIME_LIMIT_MS = 120_000;

let longest = 1;

/**
 * Returns how often a test file repeats its work: the number in an environment variable, or the usual one. A run that
 * is n times as long gets n times the time limit.
 */
export function repeats(variable: string, usual: number): number {
  const count = Number(process.env[variable] ?? usual);
  if (count / usual > longest) {
    longest = count / usual;
    vi.setConfig({ testTimeout: longest * TIME_LIMIT_MS, hookTimeout: longest * TIME_LIMIT_MS });
  }
  return count;
}
