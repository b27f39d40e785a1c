import type {
  DescMethodClientStreaming,
  DescMethodServerStreaming,
  DescMethodUnary,
  Message,
  MessageShape,
} from "@bufbuild/protobuf";
import type { Call } from "../../namespace/call/call.ts";
import { eachOperation, OPERATIONS, type OperationFacts } from "../../namespace/operations/operations.ts";
import type { AnyOperation, Methods } from "../../namespace/operations/touch.ts";

/** Name of an operation of the contract, of LanceDB's own routes of the drivers of jobs or of the gateway itself, for example `describeTable`. */
export type OperationName = AnyOperation;

type RequestOf<K extends OperationName> =
  Methods[K] extends DescMethodUnary<infer I>
    ? { readonly kind: "unary"; readonly operation: K; readonly message: MessageShape<I> }
    : Methods[K] extends DescMethodClientStreaming<infer I>
      ? {
          readonly kind: "upload";
          readonly operation: K;
          /** The parameters. */
          readonly message: MessageShape<I>;
          /** The Arrow body, split anywhere. It can be read once. */
          readonly data: AsyncIterable<Uint8Array>;
        }
      : Methods[K] extends DescMethodServerStreaming<infer I>
        ? { readonly kind: "download"; readonly operation: K; readonly message: MessageShape<I> }
        : never;

type ResponseOf<K extends OperationName> =
  Methods[K] extends DescMethodServerStreaming<infer _, infer O>
    ? AsyncIterable<MessageShape<O>>
    : Methods[K] extends DescMethodUnary<infer _, infer O> | DescMethodClientStreaming<infer _, infer O>
      ? MessageShape<O>
      : never;

/** Request of an operation. `operation` and `kind` narrow the type of the rest. */
export type OperationRequest<K extends OperationName = OperationName> = { [P in K]: RequestOf<P> }[K];

/** Response of an operation: a message, or for a download the messages of its stream. */
export type OperationResponse<K extends OperationName = OperationName> = { [P in K]: ResponseOf<P> }[K];

/** Passes a call on to the next interceptor, or from the last one to the backend. */
export type Next<K extends OperationName = OperationName> = (
  call: Call,
  request: OperationRequest<K>,
) => Promise<OperationResponse<K>>;

/**
 * A step that every call passes, on every protocol and before every backend. It may refuse the call by throwing a
 * LanceError, change the request, answer without calling `next`, or change the response.
 *
 * The promise of a download resolves before its first message; the stream of messages reports later failures. An
 * interceptor that needs the end of a download wraps the stream.
 */
export interface Interceptor<K extends OperationName = OperationName> {
  (call: Call, request: OperationRequest<K>, next: Next<K>): Promise<OperationResponse<K>>;
  /** Whether calls of an operation pass the step. It is asked once, when the pipeline is created. Default: all pass it. */
  readonly appliesTo?: AppliesTo | undefined;
}

/** Returns what follows a step in the chain of another operation, for requests that the step makes itself. */
export type Others = <K extends OperationName>(operation: K) => Next<K>;

type AppliesTo = (facts: OperationFacts) => boolean;

/** An interceptor that may also make requests of other operations. */
export interface Step {
  (call: Call, request: OperationRequest, next: Next, others: Others): Promise<OperationResponse>;
  readonly appliesTo?: AppliesTo | undefined;
}

/** Makes only the calls of some operations pass a step. */
export function onlyFor<S extends Step>(appliesTo: AppliesTo, step: S): S {
  return Object.assign(step, { appliesTo });
}

/** Makes calls whose operations check a key of their own, such as those of drivers, go past a step that asks who calls. */
export function exceptOwnKeys(step: Step): Step {
  const { appliesTo = () => true } = step;
  const passed: Step = (...args) => step(...args);
  return onlyFor((facts) => !facts.checksKey && appliesTo(facts), passed);
}

/** Interceptors of single operations, each typed by its operation. */
export type OperationInterceptors = { readonly [K in OperationName]?: Interceptor<K> };

/** Creates an interceptor that applies to the named operations and passes all other calls on. */
export function interceptOperations(interceptors: OperationInterceptors): Interceptor {
  const byOperation: { readonly [name: string]: Interceptor | undefined } = interceptors as never;
  return (call, request, next) => {
    const interceptor = byOperation[request.operation];
    return interceptor === undefined ? next(call, request) : interceptor(call, request, next);
  };
}

/** Whether a response is the stream of a download. */
export function isStream(
  response: OperationResponse,
): response is AsyncIterable<Message> & OperationResponse {
  return Symbol.asyncIterator in response;
}

/**
 * Composes a chain for each operation, of the interceptors that apply to it; the first one is outermost. Operations with the same
 * interceptors share a chain. A failure is always a rejected promise, also when an interceptor throws before its first `await`.
 */
export function compose(interceptors: readonly Step[], last: Next): Next {
  const end = rejecting(last);
  const chains = interceptors.reduceRight(
    (rest, interceptor) => {
      const others = ((operation) => rest[operation]) as Others;
      const made = new Map<Next, Next>();
      return eachOperation((name) => {
        const next = rest[name];
        if (interceptor.appliesTo?.(OPERATIONS[name]) === false) return next;
        const chain =
          made.get(next) ?? rejecting((call, request) => interceptor(call, request, next, others));
        made.set(next, chain);
        return chain;
      });
    },
    eachOperation(() => end),
  );
  return (call, request) => chains[request.operation](call, request);
}

function rejecting(step: Next): Next {
  return (call, request) => {
    try {
      return Promise.resolve(step(call, request));
    } catch (thrown) {
      return Promise.reject(thrown);
    }
  };
}
