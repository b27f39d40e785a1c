import type { ErrorName } from "../errors.ts";

/** How a call ended, as far as it is kept. */
export type KeptOutcome =
  /** The answer, in binary; undefined if it is too large to keep. */
  | { readonly answer: Uint8Array | undefined }
  | { readonly error: { readonly kind: ErrorName; readonly message: string } };

/** A call that has taken a key before. */
export interface EarlierCall {
  /** Hash of its request, without the body. */
  readonly request: string;
  /**
   * `ended`: its process ended, or its storage failed, before its outcome was kept; nobody knows whether it changed something.
   */
  readonly state: "running" | "ended" | "done";
  /** Hash of its body, if it was read to its end. */
  readonly body?: string | undefined;
  /** Present if it is done. */
  readonly outcome?: KeptOutcome | undefined;
}

/** A key that this call has taken. */
export interface TakenKey {
  /** Keeps the outcome of the call. */
  keep(outcome: KeptOutcome, body: string | undefined): Promise<void>;
  /** Notes that nobody knows how the call ended. */
  lose(): Promise<void>;
  /** Gives the key back: the call has changed nothing and may be repeated. */
  release(): Promise<void>;
}

/** Calls by the keys that their clients chose, for at least a day and at most two, in a place that all servers of a catalog share. */
export interface IdempotencyRecords {
  /**
   * Takes a key for a call.
   *
   * @param key hash of the caller and of the text that it chose
   * @param request hash of the request without its body
   * @returns the earlier call if the key is taken
   * @throws LanceError of the storage; the call must not run then
   */
  take(key: string, request: string): Promise<TakenKey | EarlierCall>;
}

/** Whether a key belongs to an earlier call. */
export function isEarlier(taken: TakenKey | EarlierCall): taken is EarlierCall {
  return "state" in taken;
}
