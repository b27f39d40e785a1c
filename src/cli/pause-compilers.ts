import { getCompileCacheDir } from "node:module";
import { setFlagsFromString } from "node:v8";

/** Compilers of V8 for code that runs often. */
const COMPILERS = ["sparkplug", "maglev", "turbo"];

/**
 * Time after which a start has more to do than others, such as to read a large catalog, which takes twice as long without compilers,
 * in milliseconds.
 */
export const LONG_START_MS = 1_000;

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

/** Whether V8 is kept from compiling now. */
export const areCompilersPaused = () => arePaused;

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
