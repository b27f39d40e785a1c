import type { Outcome } from "../conditional-put.ts";
import { failureOf, isMissing, isPassing, toS3Error } from "./client.ts";

/** A condition, as a header and in the words of the library. */
export type Condition = readonly [
  header: Readonly<Record<string, string>>,
  field: { readonly IfNoneMatch: string } | { readonly IfMatch: string },
];

/** The condition that no object exists. */
export const UNLESS_EXISTING: Condition = [{ "if-none-match": "*" }, { IfNoneMatch: "*" }];

/** Meanings of the statuses of conditional writes. */
const OUTCOMES: Readonly<Record<number, "refused" | "busy">> = { 409: "busy", 412: "refused" };

/** Returns the outcome of an attempt under a condition, which resolves to the status of a refusal or undefined. */
export async function outcomeOf(attempt: Promise<number | undefined>): Promise<Outcome> {
  try {
    return OUTCOMES[(await attempt) ?? 0] ?? "done";
  } catch (error) {
    const outcome = OUTCOMES[failureOf(error).status ?? 0];
    if (outcome !== undefined) return outcome;
    if (isPassing(error)) return { unclear: toS3Error(error) };
    throw toS3Error(error);
  }
}

/**
 * Returns the outcome of an attempt on an object with a tag.
 *
 * @param plainly makes the change without the condition, for a service that refuses the condition as unknown
 */
export function outcomeOfTagged(
  attempt: Promise<number | undefined>,
  plainly: () => Promise<unknown>,
): Promise<Outcome> {
  return outcomeOf(
    attempt.catch(async (error: unknown) => {
      if (isMissing(error)) return 412;
      if (failureOf(error).status !== 501) throw error;
      await plainly();
      return undefined;
    }),
  );
}
