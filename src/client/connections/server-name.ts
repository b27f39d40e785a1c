import { LanceError, type LanceErrorOptions } from "../../namespace/errors.ts";

/** How errors name the server of a connection where their authors do not know its address. */
export const SERVER = "the upstream catalog";

/** Returns an error with the address of the server, if it is known, in place of these words. */
export function withServerName(error: LanceError, address: string | undefined): LanceError {
  if (address === undefined || !error.message.includes(SERVER)) return error;
  const message = error.message.replace(SERVER, () => address);
  // An error has all that its options give.
  return new LanceError(error.kind, message, error as LanceErrorOptions);
}
