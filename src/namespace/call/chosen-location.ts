import { LanceError } from "../errors.ts";
import type { Call } from "./call.ts";

/**
 * Checks a declaration over a catalog that does not know what is at a location: one that chooses its location gives access to the data there, as
 * a registration does, and so its caller must be one who may register.
 *
 * @param location of the declaration; without one, the table gets a place of its own
 * @throws LanceError PermissionDenied
 */
export async function checkChosenLocation(
  call: Pick<Call, "may">,
  location: string | undefined,
): Promise<void> {
  if (!location || ((await call.may?.("manage")) ?? true)) return;
  throw new LanceError(
    "PermissionDenied",
    "a declaration that names a location needs the action manage, because it gives access to the data that is there; leave location out",
  );
}
