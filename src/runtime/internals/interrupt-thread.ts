import { executionAsyncResource } from "node:async_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import { Worker, type WorkerOptions } from "node:worker_threads";

/**
 * Option of Node with which a thread survives {@link interruptThread}: code that is interrupted leaves its entries on the stack of async
 * hooks, for which Node would abort the process.
 */
const INTERRUPTIBLE = "--no-force-async-hooks-checks";

/**
 * Starts a thread that can be interrupted. A process that was started with options of V8, which Node takes for no thread, gets one that
 * cannot.
 */
export function startInterruptible(program: string | URL, options: WorkerOptions) {
  try {
    const execArgv = [...process.execArgv, INTERRUPTIBLE];
    return { worker: new Worker(program, { ...options, execArgv }), isInterruptible: true };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ERR_WORKER_INVALID_EXEC_ARGV") throw error;
    return { worker: new Worker(program, options), isInterruptible: false };
  }
}

/** Name of the function that {@link allowInterruption} adds to the global object of a thread. */
const BEFORE = "lance-gateway: before an interruption";

/** Commands of an interruption. */
const COMMANDS = [
  ["Runtime.evaluate", { expression: `globalThis[${JSON.stringify(BEFORE)}]?.()` }],
  ["Runtime.terminateExecution", {}],
] as const;

/** Parts of an immediate of Node that say whether it has run. */
interface NodeImmediate {
  _destroyed: boolean;
  _onImmediate: () => void;
}

/**
 * Prepares the thread in which it is called for {@link interruptThread}. Node would wait for the end of an immediate that is interrupted, and
 * run no other one: it passes for one that has not begun.
 */
export function allowInterruption(): void {
  Object.defineProperty(globalThis, BEFORE, {
    value() {
      const running = executionAsyncResource() as Partial<NodeImmediate>;
      if (typeof running._onImmediate !== "function") return;
      running._destroyed = false;
      running._onImmediate = () => {};
      // Node counts it twice as run. Another immediate, which always waits, makes up for that: Node runs none if its count says that there is none.
      const wait = () => void setImmediate(wait).unref();
      wait();
    },
  });
}

/**
 * Ends the JavaScript that a worker thread runs right now, as an exception would that nothing can catch. Its event loop goes on. The
 * thread must be interruptible, and should have called {@link allowInterruption}.
 *
 * @param threadId number of the thread in Node
 * @param longestMs longest time to wait, in milliseconds: a thread that hangs in native code cannot be interrupted
 * @returns whether the thread was interrupted in time
 */
export async function interruptThread(threadId: number, longestMs: number): Promise<boolean> {
  // Few processes ever need the module.
  const { Session } = await import("node:inspector");
  const session = new Session();
  session.connect();
  try {
    const interrupted = new Promise<boolean>((resolve) => {
      session.on("NodeWorker.attachedToWorker", ({ params: { sessionId, workerInfo } }) => {
        if (!workerInfo.title.startsWith(`[worker ${threadId}]`)) return;
        for (const [id, [method, params]] of COMMANDS.entries()) {
          const message = JSON.stringify({ id, method, params });
          session.post("NodeWorker.sendMessageToWorker", { sessionId, message });
        }
      });
      session.on("NodeWorker.receivedMessageFromWorker", ({ params: { message } }) => {
        // It answers the last command when the JavaScript has ended.
        if (JSON.parse(message).id === COMMANDS.length - 1) resolve(true);
      });
    });
    session.post("NodeWorker.enable", { waitForDebuggerOnStart: false });
    return await Promise.race([interrupted, sleep(longestMs, false, { ref: false })]);
  } finally {
    session.disconnect();
  }
}
