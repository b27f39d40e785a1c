import type { FastifyPluginCallback } from "fastify";
import { type LoopPace, UNPACED } from "../../runtime/loop-pace.ts";
import { exchangeOf, isGone } from "../../wires/rest/http.ts";
import { refuseOtherMethods } from "./probes.ts";

/** Content of `/metrics`. */
export interface MetricsPage {
  /** Returns the metrics, in the format that an `Accept` header prefers. */
  read(accept?: string): Promise<{ readonly contentType: string; readonly content: Uint8Array }>;
}

/** Options of {@link metricsPlugin}. */
export interface MetricsPageOptions {
  readonly metrics: MetricsPage;
  /** Shares turns of the event loop among the answers: many may wait for the same page. Default: they do not wait. */
  readonly pace?: LoopPace | undefined;
}

/** Serves the page of metrics. */
export const metricsPlugin: FastifyPluginCallback<MetricsPageOptions> = (
  app,
  { metrics, pace = UNPACED },
  done,
) => {
  app.get("/metrics", async ({ headers }, reply) => {
    try {
      const { contentType, content } = await metrics.read(headers.accept);
      if (!pace.enter()) await pace.turn(exchangeOf(reply.raw));
      if (isGone(reply.raw)) return reply.hijack();
      return reply.type(contentType).send(content);
    } catch {
      return reply.code(500).type("text/plain").send("the metrics cannot be read\n");
    }
  });

  refuseOtherMethods(app, "/metrics");
  done();
};
