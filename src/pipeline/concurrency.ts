import type { Call } from "../namespace/call.ts";
import { LanceError } from "../namespace/errors.ts";
import type { Service } from "../namespace/service.ts";
import { refused } from "./observe.ts";

/** Bounds how many calls of a service run at once; one more is refused with Throttling. */
export function limitConcurrency(service: Service, maxCalls: number): Service {
  let running = 0;

  function enter(call: Call): void {
    if (running >= maxCalls) {
      const message = `no more than ${maxCalls} calls may run at once`;
      throw refused(call, new LanceError("Throttling", message, { headers: { "retry-after": "1" } }));
    }
    running += 1;
  }

  async function limited<T>(call: Call, run: () => Promise<T>): Promise<T> {
    enter(call);
    try {
      return await run();
    } finally {
      running -= 1;
    }
  }

  return {
    unary: (method, request, call) => limited(call, () => service.unary(method, request, call)),
    upload: (method, request, data, call) => limited(call, () => service.upload(method, request, data, call)),

    async *download(method, request, call) {
      enter(call);
      try {
        yield* service.download(method, request, call);
      } finally {
        running -= 1;
      }
    },
  };
}
