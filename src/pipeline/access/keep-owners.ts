import { ownerKey } from "../../namespace/call/caller-key.ts";
import { LanceError } from "../../namespace/errors.ts";
import type { Interceptor } from "../call/interceptor.ts";

/** Refuses a call that presents what belongs to another caller, before it learns anything of its object. */
export const keepOwners: Interceptor = (call, request, next) => {
  if (call.heldBy !== undefined && call.heldBy !== ownerKey(call))
    throw new LanceError("PermissionDenied", "the ticket belongs to another caller");
  return next(call, request);
};
