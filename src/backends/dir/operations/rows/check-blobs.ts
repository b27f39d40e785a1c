import type { ArrowField } from "../../../../arrow/schema.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import { BLOB_TYPE, EXTENSION } from "../../format/files/blob-files.ts";

/** The part of a stored blob that says where its bytes are. */
const KIND = "kind";

/**
 * Refuses blobs in the form in which the engine stores them. In this form a row says where its blob is, which may be in any file of the
 * server; the engine checks that only in the form in which clients send blobs.
 *
 * @throws LanceError InvalidInput
 */
export function checkBlobs(fields: readonly ArrowField[]): void {
  for (const { name, metadata, children } of fields) {
    if (metadata[EXTENSION] === BLOB_TYPE && children.some((child) => child.name === KIND)) {
      const column = JSON.stringify(name);
      throw new LanceError("InvalidInput", `column ${column} has stored blobs; send their bytes in "data"`);
    }
    checkBlobs(children);
  }
}
