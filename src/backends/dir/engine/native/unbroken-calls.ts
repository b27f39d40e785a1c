import { LanceError } from "../../../../namespace/errors.ts";
import { countUnbroken, isThreadEnding } from "../../../../runtime/threads/unbroken-work.ts";

/**
 * Counts the calls of native classes as work that must have ended before its thread does: the engine's Node API aborts the process when a
 * call ends whose thread has ended (docs/adr/0058). Calls fail with ServiceUnavailable once the thread is about to end.
 */
export function keepCallsUnbroken(classes: Iterable<{ readonly prototype: object }>): void {
  for (const { prototype } of classes) {
    for (const [name, { value, ...rest }] of Object.entries(Object.getOwnPropertyDescriptors(prototype))) {
      if (name === "constructor" || name === "close" || typeof value !== "function") continue;
      Object.defineProperty(prototype, name, { ...rest, value: unbroken(value) });
    }
  }
}

function unbroken(method: (...args: unknown[]) => unknown) {
  return function call(this: unknown, ...args: unknown[]): unknown {
    if (isThreadEnding()) throw new LanceError("ServiceUnavailable", "the server is shutting down");
    const result = method.apply(this, args);
    if (result instanceof Promise) countUnbroken(result);
    return result;
  };
}
