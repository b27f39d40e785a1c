import type { RecordBatch } from "apache-arrow";
import { LanceError } from "../../namespace/errors.ts";
import { withSmallLists } from "./small-lists.ts";

/**
 * Yields the batches of Arrow IPC, a stream or a file that is cut anywhere. It loads apache-arrow. Large lists of a stream become lists.
 *
 * @throws LanceError Internal for bytes that cannot be decoded, and every error of the bytes.
 */
export async function* readBatches(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<RecordBatch> {
  const { RecordBatchReader } = await import("apache-arrow");
  const source = bytes[Symbol.asyncIterator]();
  let failure: unknown;
  // The reader sometimes treats a failure of its source as the end of the stream; this keeps the failure for later.
  async function* watched() {
    try {
      yield* { [Symbol.asyncIterator]: () => source };
    } catch (thrown) {
      failure = thrown;
      throw thrown;
    }
  }
  try {
    const reader = await RecordBatchReader.from(withSmallLists(watched()));
    for await (const batch of reader) yield batch;
  } catch (thrown) {
    throw failure ?? undecodable(thrown);
  } finally {
    await source.return?.();
  }
  if (failure !== undefined) throw failure;
}

/** Returns the error for rows that the library cannot decode. */
export function undecodable(thrown: unknown): unknown {
  if (thrown instanceof LanceError) return thrown;
  const text = thrown instanceof Error ? thrown.message : String(thrown);
  return new LanceError("Internal", `cannot decode the rows of the response: ${text}`, { cause: thrown });
}
