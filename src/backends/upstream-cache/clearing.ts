import type { DescMethod, Message } from "@bufbuild/protobuf";
import type { Call } from "../../namespace/call/call.ts";
import type { Identifier } from "../../namespace/identifier.ts";
import { touchedBy } from "./touched.ts";

type Single = (request: Message, ...rest: unknown[]) => Promise<Message>;
type Streaming = (request: Message, call: Call) => AsyncIterable<Message>;

/**
 * Evicts what handlers of writing calls may touch: before the call, so that no caller gets a value that may change
 * now, and after it, because another caller may have asked meanwhile. A call that failed or was cancelled may have
 * had an effect.
 */
export function createClearing(clear: (id: Identifier) => void) {
  return (method: DescMethod, handler: unknown): unknown => {
    if (method.methodKind === "server_streaming") {
      const stream = handler as Streaming;
      return async function* (request: Message, call: Call) {
        const after = before(request, call);
        try {
          yield* stream(request, call);
        } finally {
          after();
        }
      };
    }
    const single = handler as Single;
    return async (request: Message, ...rest: unknown[]) => {
      const after = before(request, rest.at(-1) as Call);
      try {
        return await single(request, ...rest);
      } finally {
        after();
      }
    };
  };

  function before(request: Message, call: Call): () => void {
    // The handler may change the request.
    const touched = touchedBy(request, call);
    const run = () => {
      for (const id of touched) clear(id);
    };
    run();
    return run;
  }
}
