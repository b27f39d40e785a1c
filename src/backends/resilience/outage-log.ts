import type { Logger } from "pino";

/** Logs outages of upstreams that are asked again and again. */
export interface OutageLog {
  /** Takes note that an upstream cannot be reached. */
  failed(upstream: string, error: unknown): void;
  /** Takes note that an upstream answers. */
  answered(upstream: string): void;
}

/** Creates a log with a line when an outage begins and another when it ends; the failures between them are of the level debug. */
export function createOutageLog(log: Logger): OutageLog {
  const away = new Set<string>();
  return {
    failed(upstream, error) {
      const level = away.has(upstream) ? "debug" : "warn";
      away.add(upstream);
      log[level]({ err: error, upstream }, "the upstream catalog cannot be reached");
    },
    answered(upstream) {
      if (away.delete(upstream)) log.info({ upstream }, "the upstream catalog answers again");
    },
  };
}
