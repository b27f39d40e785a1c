import type { DescMethod, Message } from "@bufbuild/protobuf";
import { wholeBody } from "../arrow/whole-body.ts";
import { type ByteBudget, createByteBudget } from "../namespace/byte-budget.ts";
import type { Call } from "../namespace/call.ts";
import { LanceError } from "../namespace/errors.ts";
import type { Backend } from "../namespace/lance-namespace.ts";
import type { Service } from "../namespace/service.ts";
import { admitBody, type BodyLimits } from "./limits.ts";
import { negotiateArrow } from "./negotiate.ts";
import { observe, observeStream } from "./observe.ts";
import { resolveRequest, shareContext } from "./resolve.ts";

type UnaryHandler = (request: Message, call: Call) => Promise<Message>;
type UploadHandler = (request: Message, data: AsyncIterable<Uint8Array>, call: Call) => Promise<Message>;
type DownloadHandler = (request: Message, call: Call) => AsyncIterable<Message>;

/** What {@link createService} needs. */
export interface ServiceOptions {
  readonly backend: Backend;
  readonly limits: BodyLimits;
  /** What the Arrow bodies of calls take their memory from. Default: no bound. */
  readonly budget?: ByteBudget;
}

/**
 * The steps that every call passes, on every wire: settle its object and its credentials, admit its body,
 * hand it to the backend, fit the answer to what the client accepts, log how it ended.
 */
export function createService({ backend, limits, budget = createByteBudget() }: ServiceOptions): Service {
  const handlers: Readonly<Record<string, unknown>> = { ...backend.operations, ...backend.extensions };

  function handlerOf<H>(method: DescMethod): H {
    const handler = handlers[method.localName];
    if (handler === undefined) {
      throw new LanceError("Unsupported", `${method.name} is not supported by the ${backend.name} backend`);
    }
    return handler as H;
  }

  return {
    unary: (method, request, call) =>
      observe(call, async () => {
        resolveRequest(request, call);
        const response = await handlerOf<UnaryHandler>(method)(request, call);
        shareContext(response, call);
        return response;
      }),

    upload: (method, request, chunks, call) =>
      observe(call, async () => {
        resolveRequest(request, call);
        const handler = handlerOf<UploadHandler>(method);
        const hold = budget.open();
        call.holdBody = (bytes) => hold.take(bytes);
        call.releaseBody = (bytes) => hold.release(bytes);
        try {
          const whole = call.hasKnownEnd === true ? chunks : wholeBody(chunks);
          const response = await handler(request, admitBody(whole, hold, limits), call);
          shareContext(response, call);
          return response;
        } finally {
          hold.release();
        }
      }),

    download: (method, request, call) =>
      observeStream(call, async function* () {
        resolveRequest(request, call);
        const messages = handlerOf<DownloadHandler>(method)(request, call);
        for await (const message of negotiateArrow(messages, call)) {
          shareContext(message, call);
          yield message;
        }
      }),
  };
}
