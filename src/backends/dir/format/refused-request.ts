import { LanceError } from "../../../namespace/errors.ts";

/** An answer of the storage that proves that it has not carried the request out. */
export class RefusedRequest extends LanceError {}
