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

/**
 * Ends the JavaScript that a worker thread runs right now, as an exception would that nothing can catch. Its event loop goes on. The
 * thread must be interruptible.
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
        const message = JSON.stringify({ id: 1, method: "Runtime.terminateExecution" });
        session.post("NodeWorker.sendMessageToWorker", { sessionId, message });
      });
      // It answers when the JavaScript has ended.
      session.on("NodeWorker.receivedMessageFromWorker", () => resolve(true));
    });
    session.post("NodeWorker.enable", { waitForDebuggerOnStart: false });
    return await Promise.race([interrupted, sleep(longestMs, false, { ref: false })]);
  } finally {
    session.disconnect();
  }
}
