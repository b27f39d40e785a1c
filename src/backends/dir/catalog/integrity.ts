import type { Logger } from "pino";
import { type ErrorName, LanceError } from "../../../namespace/errors.ts";

/** Failures to read a catalog that say something of the storage or of this software, and not of the catalog. */
const NO_DAMAGE: readonly ErrorName[] = ["Unsupported", "ServiceUnavailable", "Throttling"];

/** Tells a catalog that was damaged or taken away from one that is read. */
export interface Integrity {
  /**
   * Looks at the number of the newest version, and reads what is new.
   *
   * @param seen the newest version that was read or made before
   * @throws LanceError ServiceUnavailable when the number is smaller, or when the catalog cannot be read
   */
  guard(found: number, seen: number, read: () => Promise<void>): Promise<void>;
}

/**
 * Creates the guard of a catalog. Versions that were seen do not go away: an operator has removed or restored
 * something, or a volume is not mounted. Until they are back nothing is answered, and above all nothing is begun anew;
 * who accepts what is there restarts the server. The log gets one error, and one line when all is well again.
 */
export function createIntegrity(log: Logger): Integrity {
  let isDamaged = false;

  function damage(details: object, message: string, cause?: unknown): LanceError {
    if (!isDamaged) log.error({ ...details, err: cause }, `${message}; nothing is served until it is back`);
    isDamaged = true;
    return new LanceError("ServiceUnavailable", message, { cause });
  }
  return {
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
