import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { isMainThread } from "node:worker_threads";
import { LanceError } from "../../../../namespace/errors.ts";
import { countUnbroken, isThreadEnding } from "../../../../runtime/threads/unbroken-work.ts";
import { explainMissing } from "../../../load-library.ts";
import type { NativeModule } from "./native.ts";

/*
 * The engine's JavaScript wrapper decodes and encodes Arrow; the native classes below it take and give Arrow
 * IPC bytes. They are loaded from the wrapper's own folder, as it loads them itself: the package exports only
 * the wrapper, but reaching through the wrapper's objects would depend on its private fields as much, and
 * would load a second Arrow implementation and the embedding registry at start. `loadNative` fails at once
 * when another version of the package has another shape.
 */

/** Required methods; a missing one would otherwise show in the middle of a request. */
const EXPECTED: Readonly<Record<string, readonly string[]>> = {
  Connection: ["openTable", "createTable", "close"],
  Table: [
    "schema",
    "version",
    "add",
    "delete",
    "mergeInsert",
    "update",
    "stats",
    "addColumnsWithSchema",
    "prewarmIndex",
    "listIndices",
    "query",
    "takeRowIds",
    "fetchBlobs",
    "fetchBlobFiles",
    "checkoutLatest",
    "checkoutCurrent",
    "restore",
    "branches",
    "getLsmWriteSpec",
    "unsetLsmWriteSpec",
    "optimize",
  ],
  Branches: ["list", "create", "checkout", "delete"],
  Query: [
    "execute",
    "outputSchema",
    "onlyIf",
    "selectColumns",
    "nearestTo",
    "explainPlan",
    "analyzePlan",
    "useLsm",
  ],
  VectorQuery: ["column", "distanceType", "postfilter", "distanceRange"],
  NativeMergeInsertBuilder: [
    "whenMatchedUpdateAll",
    "whenNotMatchedInsertAll",
    "setTimeout",
    "useIndex",
    "useLsm",
    "execute",
  ],
  RecordBatchIterator: ["next"],
  TakeQuery: ["selectColumns", "execute"],
  BlobFile: ["size", "readRange"],
  Job: ["wait", "cancel"],
};

/** The package of the engine. */
const ENGINE = "@lancedb/lancedb";
const require = createRequire(import.meta.url);

/**
 * Returns the folder of the engine's modules, without loading them.
 *
 * @throws Error with a single line, if the engine is not installed.
 */
export function findEngine(): string {
  try {
    return dirname(require.resolve(ENGINE));
  } catch (error) {
    throw explainMissing("a directory of tables", ENGINE, error);
  }
}

let loaded: NativeModule | undefined;

/**
 * Loads the native module of the engine, once.
 *
 * @throws Error, if the package is missing, has no build for this system, or has another shape than this code expects.
 */
export function loadNative(): NativeModule {
  loaded ??= loadChecked();
  return loaded;
}

function loadChecked(): NativeModule {
  const native = requireNative(findEngine());
  for (const [name, methods] of Object.entries(EXPECTED)) {
    const missing = methods.find((method) => !(method in (native[name]?.prototype ?? {})));
    if (missing !== undefined) {
      throw new Error(`this version of ${ENGINE} is not supported: ${name}.${missing} is missing`);
    }
  }
  if (!isMainThread) keepCallsUnbroken(Object.keys(EXPECTED).flatMap((name) => native[name] ?? []));
  return native as unknown as NativeModule;
}

function requireNative(folder: string): Record<string, { prototype: object } | undefined> {
  try {
    return require(join(folder, "native.js"));
  } catch (cause) {
    const system = `${process.platform} on ${process.arch}`;
    const text = `${ENGINE} has no native part for ${system} here; install it without --omit=optional`;
    throw new Error(text, { cause });
  }
}

/**
 * Counts the calls of native classes as work that must have ended before its thread does: the engine's Node API aborts the process when a
 * call ends whose thread has ended (docs/adr/0058). Calls fail with ServiceUnavailable once the thread is about to end.
 */
function keepCallsUnbroken(classes: Iterable<{ readonly prototype: object }>): void {
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
