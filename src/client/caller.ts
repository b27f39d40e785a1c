import type {
  DescMethod,
  DescMethodClientStreaming,
  DescMethodServerStreaming,
  DescMethodUnary,
  Message,
} from "@bufbuild/protobuf";
import { ARROW_STREAM } from "../arrow/ipc/ipc-forms.ts";
import { type Call, createCall } from "../namespace/call/call.ts";
import { LanceError, toLanceError } from "../namespace/errors.ts";
import type { LanceNamespace } from "../namespace/lance-namespace.ts";
import { checkFields } from "../pipeline/call/field-checks.ts";
import { resolveRequest, shareContext } from "../pipeline/call/resolve.ts";
import { beforeEnd } from "../runtime/promises.ts";
import { SILENT_LOG } from "./connections/silent-log.ts";
import { withServerName } from "./errors.ts";
import type { CallOptions } from "./types.ts";

/** Carries out calls on an implementation; every failure is a LanceError, InvalidInput for an unknown option. */
export interface Caller {
  unary(method: DescMethodUnary, request: Message, options: CallOptions): Promise<Message>;
  upload(
    method: DescMethodClientStreaming,
    request: Message,
    data: AsyncIterable<Uint8Array>,
    options: CallOptions,
  ): Promise<Message>;
  download(method: DescMethodServerStreaming, request: Message, options: CallOptions): AsyncIterable<Message>;
}

type Handler<A extends unknown[], R> = (request: Message, ...rest: A) => R;

/** A call, and the promise that ends it early. */
interface Begun {
  readonly call: Call;
  /** Rejects when the call is aborted, even if the implementation ignores the signal. */
  readonly aborted: Promise<never>;
  end(): void;
}

/**
 * Creates the caller of an implementation.
 *
 * @param headers headers for every call.
 * @param server address of the server in errors. Default: they say that it is the upstream.
 * @param closing ends the calls that begin after it; those that run then end by the implementation.
 */
export function createCaller(
  name: string,
  operations: Partial<LanceNamespace>,
  headers: Readonly<Record<string, string>> = {},
  server?: string,
  closing?: AbortSignal,
): Caller {
  const handlers: Readonly<Record<string, unknown>> = { ...operations };

  function handlerOf<H>(method: DescMethod): H {
    if (closing?.aborted) throw new LanceError("Cancelled", "the connection is closed");
    const handler = handlers[method.localName];
    if (handler !== undefined) return handler as H;
    throw new LanceError("Unsupported", `${method.name} is not supported by the implementation "${name}"`);
  }

  async function once(
    method: DescMethod,
    options: CallOptions,
    run: (call: Call, aborted: Promise<never>) => Promise<Message>,
  ): Promise<Message> {
    const { call, aborted, end } = begin(method, headers, options);
    try {
      call.signal.throwIfAborted();
      const response = await Promise.race([run(call, aborted), aborted]);
      shareContext(response, call);
      return response;
    } catch (thrown) {
      throw withServerName(failureOf(thrown, call), server);
    } finally {
      end();
    }
  }

  async function* download(
    method: DescMethodServerStreaming,
    request: Message,
    options: CallOptions,
  ): AsyncIterable<Message> {
    const { call, aborted, end } = begin(method, headers, options);
    try {
      call.signal.throwIfAborted();
      prepare(request, call);
      const run = handlerOf<Handler<[Call], AsyncIterable<Message>>>(method);
      yield* endedBy(aborted, run(request, call));
    } catch (thrown) {
      throw withServerName(failureOf(thrown, call), server);
    } finally {
      end();
    }
  }

  return {
    unary: (method, request, options) =>
      once(method, options, (call) => {
        prepare(request, call);
        return handlerOf<Handler<[Call], Promise<Message>>>(method)(request, call);
      }),
    upload: (method, request, data, options) =>
      once(method, options, (call, aborted) => {
        prepare(request, call);
        const run = handlerOf<Handler<[AsyncIterable<Uint8Array>, Call], Promise<Message>>>(method);
        return run(request, endedBy(aborted, data), call);
      }),
    download,
  };
}

/** Checks a request and resolves its object as servers do. @throws LanceError InvalidInput */
function prepare(request: Message, call: Call): void {
  checkFields(call.method.input, request);
  resolveRequest(request, call);
}

function begin(method: DescMethod, headers: Readonly<Record<string, string>>, options: CallOptions): Begun {
  const { signal, timeoutMs, requestId = crypto.randomUUID(), headers: own, ...others } = options;
  refuseOptions(method.localName, others);
  const controller = new AbortController();
  const cancel = () => controller.abort(abortError(signal?.reason));
  const expire = () =>
    controller.abort(new LanceError("DeadlineExceeded", `the call took more than ${timeoutMs} ms`));
  const aborted = Promise.withResolvers<never>();
  // An abort without a waiting caller must not count as unhandled.
  aborted.promise.catch(() => {});
  controller.signal.addEventListener("abort", () => aborted.reject(controller.signal.reason));
  if (signal?.aborted) cancel();
  signal?.addEventListener("abort", cancel, { once: true });
  const timer = timeoutMs === undefined ? undefined : setTimeout(expire, timeoutMs);
  const call = createCall({
    method,
    protocol: "rest",
    requestId,
    headers: Object.assign(Object.create(null), lowerCase(headers), lowerCase(own)),
    signal: controller.signal,
    deadline: timeoutMs === undefined ? undefined : Date.now() + timeoutMs,
    accept: ARROW_STREAM,
    log: SILENT_LOG,
  });
  return {
    call,
    aborted: aborted.promise,
    end() {
      clearTimeout(timer);
      signal?.removeEventListener("abort", cancel);
    },
  };
}

/** Refuses options that have no effect. @throws LanceError InvalidInput, with their names */
export function refuseOptions(operation: string, others: object): void {
  const given = Object.entries(others).filter(([, value]) => value !== undefined);
  if (given.length === 0) return;
  const names = given.map(([name]) => JSON.stringify(name)).join(", ");
  throw new LanceError("InvalidInput", `${operation} has no option ${names}`);
}

/** Yields the pieces of a stream; an abort also ends the wait for the next piece. */
async function* endedBy<T>(aborted: Promise<never>, data: AsyncIterable<T>): AsyncIterable<T> {
  const iterator = data[Symbol.asyncIterator]();
  const wait = beforeEnd(aborted);
  let over = false;
  try {
    for (;;) {
      const next = await wait(iterator.next());
      over = next.done === true;
      if (next.done) return;
      yield next.value;
    }
  } finally {
    // The iterator may wait forever; the caller does not wait for its end.
    if (!over) iterator.return?.().catch(() => {});
  }
}

function lowerCase(headers: Readonly<Record<string, string>> = {}): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
}

function abortError(reason: unknown): LanceError {
  if (reason instanceof LanceError) return reason;
  const timedOut = reason instanceof Error && reason.name === "TimeoutError";
  return timedOut
    ? new LanceError("DeadlineExceeded", "the call's time limit has passed", { cause: reason })
    : new LanceError("Cancelled", "the caller cancelled the call", { cause: reason });
}

/** Returns the reason of an abort; the error that an aborted call throws only repeats it with less detail. */
function failureOf(thrown: unknown, call: Call): LanceError {
  if (call.signal.aborted) return abortError(call.signal.reason);
  return thrown instanceof LanceError ? thrown : unexpected(thrown);
}

function unexpected(thrown: unknown): LanceError {
  const { message } = thrown instanceof Error ? thrown : toLanceError(thrown);
  return new LanceError("Internal", message, { cause: thrown });
}
