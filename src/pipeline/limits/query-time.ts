import type { Message } from "@bufbuild/protobuf";
import type { Call } from "../../namespace/call/call.ts";
import { LanceError } from "../../namespace/errors.ts";
import { beforeEnd } from "../../runtime/time/before-end.ts";
import { type Interceptor, isStream, type OperationResponse, onlyFor } from "../call/interceptor.ts";

/**
 * Bounds the duration of calls that read rows, to the end of their answers; beyond it they end with DeadlineExceeded. The backend
 * gets the end as the deadline of the call.
 *
 * @param maxMs in milliseconds
 */
export function limitQueryTime(maxMs: number): Interceptor {
  const error = new LanceError("DeadlineExceeded", `query time limit of ${maxMs} ms exceeded`, {
    limit: "query_time",
  });

  async function* limited(messages: AsyncIterable<Message>, late: Promise<never>, done: () => void) {
    const iterator = messages[Symbol.asyncIterator]();
    const wait = beforeEnd(late);
    try {
      for (;;) {
        const { done: ended, value } = await wait(iterator.next());
        if (ended) return;
        yield value as never;
      }
    } finally {
      done();
      // A backend that hangs must not hold the end of the call.
      void Promise.resolve(iterator.return?.()).catch(() => {});
    }
  }

  const limit: Interceptor = async (call, request, next) => {
    const { promise: late, reject } = Promise.withResolvers<never>();
    late.catch(() => {});
    const end = Date.now() + maxMs;
    shortenDeadline(call, end);
    const timer = setTimeout(() => {
      reject(error);
      call.cutOff?.(error);
    }, maxMs);
    const done = () => clearTimeout(timer);
    let streams = false;
    try {
      const answering = next(call, request);
      const response = await Promise.race([answering, late]).catch((thrown: unknown) => {
        answering.then(endStream).catch(() => {});
        throw thrown;
      });
      if (!isStream(response)) return response;
      streams = true;
      return limited(response, late, done) as AsyncIterable<never>;
    } finally {
      if (!streams) done();
    }
  };
  return onlyFor(({ action }) => action === "read", limit);
}

/** Frees what a stream holds that nobody reads; one that never begins would keep it. */
async function endStream(response: OperationResponse): Promise<void> {
  if (!isStream(response)) return;
  for await (const _ of response) return;
}

function shortenDeadline(call: Call, end: number): void {
  if (call.deadline === undefined || call.deadline > end) call.deadline = end;
}
