import { randomUUID } from "node:crypto";
import type { LanceError } from "../../../../namespace/errors.ts";
import { putNewest } from "../../../../runtime/collections.ts";

/** Errors that the engine was told, by ids. */
const relayed = new Map<string, LanceError>();

/** Maximum number of errors that are remembered: the engine repeats them at once, if at all. */
const MAX_RELAYED = 1_000;

/** Returns a text that represents an error. The engine repeats it, among others, when it fails with the error. */
export function relay(error: LanceError): string {
  const id = randomUUID();
  putNewest(relayed, id, error, MAX_RELAYED);
  return `relayed failure ${id}`;
}

/** Returns the error that a text of the engine represents; undefined for any other text. */
export function relayedError(text: string): LanceError | undefined {
  const id = /relayed failure ([0-9a-f-]{36})/.exec(text)?.[1];
  return id === undefined ? undefined : relayed.get(id);
}
