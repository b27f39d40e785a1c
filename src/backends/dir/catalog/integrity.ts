import type { Logger } from "pino";
import { type ErrorName, LanceError } from "../../../namespace/errors.ts";

/** Failures to read a catalog whose cause is the storage or this software, not the catalog. */
const NO_DAMAGE: readonly ErrorName[] = ["Unsupported", "ServiceUnavailable", "Throttling"];

/** Distinguishes a damaged or missing catalog from a readable one. */
export interface Integrity {
  /**
   * Checks the number of the newest version, and reads what is new.
   *
   * @param seen the newest version that this process has read or written before
   * @throws LanceError ServiceUnavailable if the number is smaller, or if the catalog cannot be read
   */
  guard(found: number, seen: number, read: () => Promise<void>): Promise<void>;
  /** Whether the last check found damage. */
  isDamaged(): boolean;
}

/**
 * Creates the guard of a catalog. Versions that were seen do not disappear by themselves: an operator has removed or
 * restored something, or a volume is not mounted. Until they are back, the catalog answers nothing and, above all,
 * creates no new manifest. An operator who accepts the current state restarts the server. The log gets a single error,
 * and a single line when the catalog is back.
 */
export function createIntegrity(log: Logger): Integrity {
  let isDamaged = false;

  function damage(details: object, message: string, cause?: unknown): LanceError {
    if (!isDamaged) log.error({ ...details, err: cause }, `${message}; nothing is served until it is back`);
    isDamaged = true;
    return new LanceError("ServiceUnavailable", message, { cause });
  }
  return {
    isDamaged: () => isDamaged,
    async guard(found, seen, read) {
      if (found < seen)
        throw damage({ found, seen }, "the catalog has lost versions that the server has seen");
      try {
        await read();
      } catch (error) {
        if (error instanceof LanceError && NO_DAMAGE.includes(error.kind)) throw error;
        throw damage({ version: found }, "the catalog cannot be read", error);
      }
      if (isDamaged) log.info({ version: found }, "the catalog is back");
      isDamaged = false;
    },
  };
}
