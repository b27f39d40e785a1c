import type { Logger } from "pino";
import type { UpstreamTransport } from "./transport.ts";

const PATIENCE_MS = 5_000;

/** Whether the upstream answers at all; what it says does not matter, only that it is not that it is out of order. */
export async function isAnswering(transport: UpstreamTransport, log: Logger): Promise<boolean> {
  try {
    const { status } = await transport.send({
      method: "GET",
      target: "/v1/namespace/%24/list?limit=1",
      headers: ["accept", "application/json"],
      body: undefined,
      streams: false,
      isProbe: true,
      signal: AbortSignal.timeout(PATIENCE_MS),
      elapsedMs: 0,
    });
    return status < 500;
  } catch (error) {
    log.warn({ err: error }, "the upstream catalog cannot be reached");
    return false;
  }
}
