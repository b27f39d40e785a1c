import { getCompileCacheDir } from "node:module";
import { setFlagsFromString } from "node:v8";
import { measureMemory, runInNewContext } from "node:vm";

/** V8's own function that collects garbage: without options all of it, before it returns. */
export interface Collect {
  (): void;
  (options: CollectOptions): Promise<void>;
}

/** Kinds of collections that run beside other work. */
export type CollectOptions =
  | { readonly type: "major"; readonly execution: "async"; readonly flavor: "last-resort" }
  | { readonly type: "minor"; readonly execution: "async" };

let kept: Collect | undefined;

/** Returns the function, which is taken once from a context of its own: that takes 0.16 MiB. */
export function v8Collector(): Collect {
  kept ??= takeCollector();
  return kept;
}

/** Maximum number of contexts in which the function is looked for. */
const MAX_TAKES = 100;

/** The flag is that of the process: another thread may turn it off before the context is made, and a program that was started with it keeps it. */
function takeCollector(): Collect {
  for (let take = 0; take < MAX_TAKES; take++) {
    const isOn = take === 0 && "gc" in globalThis;
    if (!isOn) setFlagsFromString("--expose-gc");
    const collect = runInNewContext("globalThis.gc") as Collect | undefined;
    if (!isOn) setFlagsFromString("--no-expose-gc");
    if (collect !== undefined) return collect;
  }
  throw new Error("V8 does not show its collector");
}

/** Number of received bytes after which the youngest objects are collected. */
const YOUNG_BYTES = 16 * 1024 * 1024;

let received = 0;

/**
 * Notes bytes of a body that have arrived, and has the youngest objects collected now and then. Node reads from a socket into new memory, which
 * only the collector frees. V8 collects everything when there are 64 MiB of it, unless it has collected the youngest objects before.
 */
export function noteReceived(bytes: number): void {
  received += bytes;
  if (received < YOUNG_BYTES) return;
  received = 0;
  void v8Collector()({ type: "minor", execution: "async" });
}

let collecting: Promise<void> | undefined;

/**
 * Collects all garbage in parts, between which other work runs, and resolves when that is done; calls in the meantime
 * share the collection. The longest part takes a quarter of the time of {@link v8Collector}, which collects in one.
 */
export function collectInParts(): Promise<void> {
  const end = () => {
    collecting = undefined;
  };
  // Node's only way to begin a collection that is not done at once: V8 measures while it marks. Nobody needs the measure.
  collecting ??= withoutWarning(() => measureMemory({ execution: "eager" })).then(end, end);
  return collecting;
}

/**
 * Calls a function of Node without the warning, at its first call, that it may change: that tells an operator nothing, and a client
 * prints nothing in somebody's program.
 */
function withoutWarning<T>(call: () => T): T {
  const { emitWarning } = process;
  process.emitWarning = () => {};
  try {
    return call();
  } finally {
    process.emitWarning = emitWarning;
  }
}

/** Compilers of V8 for code that runs often. */
const COMPILERS = ["sparkplug", "maglev", "turbo"];

let arePaused = false;

/**
 * Keeps V8 from compiling what a start repeats: memory for it would stay with the process (docs/adr/0028). Cached code that was
 * made under other flags is of no use to V8, so nothing happens where Node keeps some.
 */
export function pauseCompilers(): void {
  if (getCompileCacheDir() !== undefined) return;
  arePaused = true;
  setFilters("-*");
}

/** Lets V8 compile again. No other thread may run JavaScript meanwhile, because the flags are those of the process. */
export function resumeCompilers(): void {
  if (!arePaused) return;
  arePaused = false;
  setFilters("*");
}

/** Says which functions may be compiled. The compilers stay turned on, because a new thread sets itself up for those that are. */
function setFilters(functions: "*" | "-*"): void {
  for (const compiler of COMPILERS) setFlagsFromString(`--${compiler}-filter=${functions}`);
}
