import { LanceError } from "../../../namespace/errors.ts";
import type { ObjectStore } from "./storage.ts";

/**
 * Makes the request that is the change itself, such as the deletion of a tag.
 *
 * @throws LanceError OutcomeUnknown if a bucket does not say whether it has carried the request out
 */
export async function decisiveRequest<T>(store: ObjectStore, request: () => Promise<T>): Promise<T> {
  try {
    return await request();
  } catch (error) {
    throw isUnanswered(store, error) ? unknownOutcome(error) : error;
  }
}

/** Whether a request that has failed may have been carried out, or may be later. */
export function isUnanswered({ files }: ObjectStore, error: unknown): boolean {
  return files === undefined && !(error instanceof RefusedRequest);
}

/** Returns the error of a change that may be stored or not. */
export function unknownOutcome(cause: unknown): LanceError {
  return new LanceError(
    "OutcomeUnknown",
    "the storage failed during a change, which may be stored or not; look before you repeat it",
    { cause },
  );
}

/** An answer of the storage that proves that it has not carried the request out. */
export class RefusedRequest extends LanceError {}

/** Deletes an object unless it has other bytes than these; a deletion that is carried out late does not delete such a one either. */
export async function deleteIfSame(store: ObjectStore, key: string, bytes: Uint8Array): Promise<void> {
  const found = await store.getTagged(key);
  if (found !== undefined && Buffer.compare(found.bytes, bytes) === 0)
    await store.deleteTagged(key, found.tag);
}
