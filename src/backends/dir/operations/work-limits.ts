import { createPartBufferPool } from "../../../arrow/ipc/part-buffer.ts";
import { createEngineTurns, type Turns } from "../concurrency/turns.ts";
import type { PageContext, ReadContext, UploadContext } from "./context.ts";
import { createReadAhead, DEFAULT_READ_AHEAD_BYTES, type ReadAhead } from "./read/read-ahead.ts";

/** Options of the limits and the memory of work on rows, whatever catalog lists the tables. */
export interface WorkLimitOptions {
  /** Largest upload, before and after it is unpacked, in bytes. Default: 1 GiB. */
  readonly maxUploadBytes?: number | undefined;
  /** Size of the parts in which a longer upload is written, in bytes. Default: 16 MiB. */
  readonly uploadPartBytes?: number | undefined;
  /** Memory for open query results, which several backends may share. Default: 128 MiB of its own. */
  readonly readAhead?: ReadAhead | undefined;
  /** The turns of work that may hold a thread of the engine for long. Default: the backend has its own. */
  readonly engineTurns?: Turns | undefined;
  /** Maximum number of entries of a page of a listing. Default: 10,000. */
  readonly maxPageSize?: number | undefined;
  /** Maximum number of words to which the fuzzy conditions of a search may expand together. Default: 500. */
  readonly maxSearchExpansions?: number | undefined;
}

/** Limits and memory of work on rows. */
export type WorkLimits = UploadContext &
  Pick<ReadContext, "readAhead" | "maxSearchExpansions"> &
  PageContext & { readonly engineTurns: Turns };

/**
 * Returns the limits of work on rows.
 *
 * @param workers number of workers of the process. Default: 1
 */
export function workLimitsOf(options: WorkLimitOptions, workers?: number): WorkLimits {
  const { maxUploadBytes = 1024 ** 3 } = options;
  return {
    maxUploadBytes,
    uploadPartBytes: options.uploadPartBytes ?? 16 * 1024 ** 2,
    uploadBuffers: createPartBufferPool(maxUploadBytes),
    readAhead: options.readAhead ?? createReadAhead({ maxBytes: DEFAULT_READ_AHEAD_BYTES }),
    engineTurns: options.engineTurns ?? createEngineTurns(workers),
    maxPageSize: options.maxPageSize ?? 10_000,
    maxSearchExpansions: options.maxSearchExpansions ?? 500,
  };
}
