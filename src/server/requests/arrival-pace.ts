import type { ServerHttp2Stream } from "node:http2";
import { LOOP, type LoopClock, type LoopPace, type PacedExchange } from "../../runtime/loop-pace.ts";
import { withoutQuery } from "../../wires/rest/http.ts";

/** Content types of native gRPC, whatever encoding its messages have. */
export const GRPC_CONTENT_TYPE = /^application\/grpc(?!-web)/i;

/** Paths that tell how the server is. */
const PROBES = /^\/(?:healthz|readyz|grpc\.health\.v1\.Health\/\w+)$/;

/** Lets requests begin in their turns of the event loop. */
export interface ArrivalPace {
  /** Whether a request may begin now; otherwise it begins {@link ArrivalPace.later}. */
  enter(target: string, contentType?: string): boolean;
  /** Begins in a later turn, as {@link LoopPace.turn} says, unless the exchange is done by then. */
  later(target: string, exchange: PacedExchange, begin: () => void): void;
}

/**
 * Creates the pace of arriving requests. Everything that costs time has a turn, also an error and a page. Probes have a
 * pace of their own, so that they do not wait behind calls, and a flood of them does not hold calls up.
 *
 * @param paced targets of native gRPC, which begin at once unless many arrive in a single turn: their messages have turns when they arrive
 * @param clock Default: the event loop of this thread
 */
export function createArrivalPace(
  calls: LoopPace,
  probes: LoopPace,
  paced: ReadonlySet<string> = new Set(),
  clock: LoopClock = LOOP,
): ArrivalPace {
  const isProbe = (target: string) => PROBES.test(withoutQuery(target));
  const isBurst = createBurstCheck(clock);
  return {
    enter: (target, contentType = "") =>
      (GRPC_CONTENT_TYPE.test(contentType) && paced.has(target) && !isBurst()) ||
      calls.enter() ||
      (isProbe(target) && probes.enter()),
    later(target, exchange, begin) {
      const pace = isProbe(target) ? probes : calls;
      void pace.turn(exchange).then(() => {
        if (!exchange.done) begin();
      });
    },
  };
}

/** Number of requests after which the turn of the event loop is looked at: asking for it costs as much as a tenth of a short call. */
const BURST_STEP = 16;

/** Returns a check that holds from the second {@link BURST_STEP} requests of a turn to the turn's end. */
function createBurstCheck({ turn: turnOfLoop, atEndOfTurn }: LoopClock): () => boolean {
  let [left, turn, isBurst] = [BURST_STEP, -1, false];
  const endTurn = () => {
    isBurst = false;
  };
  return () => {
    if (isBurst || left-- > 0) return isBurst;
    const now = turnOfLoop();
    isBurst = now === turn;
    if (isBurst) atEndOfTurn(endTurn);
    [left, turn] = [BURST_STEP, now];
    return isBurst;
  };
}

/** A stream of HTTP/2 that waits. Of a flood there are many, and an object of a class costs less than one with a getter of its own. */
export class WaitingStream implements PacedExchange {
  readonly connection: object | undefined;
  readonly #stream: ServerHttp2Stream;

  constructor(stream: ServerHttp2Stream) {
    this.connection = stream.session;
    this.#stream = stream;
  }

  get done(): boolean {
    return this.#stream.destroyed || this.#stream.closed;
  }
}
