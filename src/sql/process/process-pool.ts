import { LanceError } from "../../namespace/errors.ts";
import { createCallerQueue } from "../../runtime/collections.ts";
import type { SqlBounds } from "../sql-engine.ts";
import { type EngineProcess, OTHER_MIB, startProcess } from "./engine-process.ts";

/** A process for one statement. */
export interface Lease {
  readonly process: EngineProcess;
  /** Gives the process back, or ends it if its state is not known. */
  end(isClean: boolean): void;
}

/** Processes that wait for a statement, and statements that wait for a process. */
export interface ProcessPool {
  /**
   * @param preferred process that is leased if it is free
   * @throws LanceError Throttling if too many statements wait; the reason of the signal
   */
  take(caller: string, signal: AbortSignal, preferred?: EngineProcess): Promise<Lease>;
  close(): void;
}

/** How long a process without work is kept, in milliseconds. */
const IDLE_MS = 60_000;

/** Creates a pool whose processes start when they are needed. @param start starts a process. Default: {@link startProcess}. */
export function createProcessPool(
  { memoryMib, keptMib, threads, maxRunning, maxCallerRunning, maxWaiting }: SqlBounds,
  start: typeof startProcess = startProcess,
): ProcessPool {
  const idle: { readonly process: EngineProcess; readonly caller: string; readonly timer: NodeJS.Timeout }[] =
    [];
  const leased = new Set<EngineProcess>();
  /** Begin the statements that wait. */
  const waiting = createCallerQueue<() => void>();
  const running = new Map<string, number>();
  let count = 0;
  let isClosed = false;

  const mayRun = (caller: string) => count < maxRunning && (running.get(caller) ?? 0) < maxCallerRunning;

  function enter(caller: string): void {
    count++;
    running.set(caller, (running.get(caller) ?? 0) + 1);
  }

  function leave(caller: string): void {
    count--;
    const left = (running.get(caller) ?? 1) - 1;
    if (left === 0) running.delete(caller);
    else running.set(caller, left);
    waiting.shift(mayRun)?.();
  }

  async function wait(caller: string, signal: AbortSignal): Promise<void> {
    if (waiting.size >= maxWaiting)
      throw new LanceError("Throttling", `no more than ${maxWaiting} SQL statements may wait at once`, {
        headers: { "retry-after": "1" },
      });
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const begin = () => {
      enter(caller);
      resolve();
    };
    const abort = () => {
      waiting.remove(begin, caller);
      reject(signal.reason);
    };
    waiting.push(begin, caller);
    signal.addEventListener("abort", abort, { once: true });
    await promise.finally(() => signal.removeEventListener("abort", abort));
  }

  function processOf(preferred: EngineProcess | undefined, caller: string): EngineProcess {
    for (;;) {
      const known = idle.findIndex(({ process }) => process === preferred);
      // It may keep tables of the caller.
      const index = known === -1 ? idle.findLastIndex((other) => other.caller === caller) : known;
      const [kept] = idle.splice(index === -1 ? idle.length - 1 : index, 1);
      if (kept === undefined) return start({ memoryMib, keptMib, threads });
      clearTimeout(kept.timer);
      if (!kept.process.hasEnded) return kept.process;
    }
  }

  function keep(process: EngineProcess, caller: string): void {
    const timer = setTimeout(() => drop(process), IDLE_MS).unref();
    idle.push({ process, caller, timer });
    // The memory that its allocator keeps would count as that of the next statement. The end of this one's result leaves first.
    setImmediate(async () => {
      if ((await process.memoryMib()) > keptMib + OTHER_MIB) drop(process);
    });
  }

  /** Ends a process that waits for a statement. */
  function drop(process: EngineProcess): void {
    const index = idle.findIndex((other) => other.process === process);
    if (index === -1) return;
    clearTimeout(idle[index]?.timer);
    idle.splice(index, 1);
    process.kill();
  }

  return {
    async take(caller, signal, preferred) {
      signal.throwIfAborted();
      if (mayRun(caller)) enter(caller);
      else await wait(caller, signal);
      const process = processOf(preferred, caller);
      leased.add(process);
      if (isClosed) process.kill();
      return {
        process,
        end(isClean) {
          if (!leased.delete(process)) return;
          if (isClean && !process.hasEnded && !isClosed) keep(process, caller);
          else process.kill();
          leave(caller);
        },
      };
    },
    close() {
      isClosed = true;
      for (const { process, timer } of idle.splice(0)) {
        clearTimeout(timer);
        process.kill();
      }
      for (const process of leased) process.kill();
    },
  };
}
