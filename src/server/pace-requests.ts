import type { LoopPace } from "../wires/loop-pace.ts";
import { isGone, withoutQuery } from "../wires/rest/http.ts";
import type { HttpHandler } from "./port/listener.ts";

/** Paths that tell how the server is; they go ahead of requests that wait for the event loop. */
const PROBES = /^\/(?:healthz|readyz|metrics|grpc\.health\.v1\.Health\/\w+)$/;

/** Answers requests in their turns of the event loop, and probes at once. */
export function paceRequests(pace: LoopPace, answer: HttpHandler): HttpHandler {
  return (request, response) => {
    if (pace.enter() || PROBES.test(withoutQuery(request.url ?? ""))) return answer(request, response);
    const exchange = {
      get done() {
        return isGone(response);
      },
    };
    void pace.turn(exchange).then(() => {
      if (!exchange.done) answer(request, response);
    });
  };
}
