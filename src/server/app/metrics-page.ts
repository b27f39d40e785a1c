import type { FastifyPluginCallback } from "fastify";
import { refuseOtherMethods } from "./probes.ts";

/** Content of `/metrics`. */
export interface MetricsPage {
  /** Returns the metrics, in the format that an `Accept` header prefers. */
  read(accept?: string): Promise<{ readonly contentType: string; readonly content: Uint8Array }>;
}

/** Serves the page of metrics. */
export const metricsPlugin: FastifyPluginCallback<{ metrics: MetricsPage }> = (app, { metrics }, done) => {
  app.get("/metrics", async ({ headers }, reply) => {
    try {
      const { contentType, content } = await metrics.read(headers.accept);
      return reply.type(contentType).send(content);
    } catch {
      return reply.code(500).type("text/plain").send("the metrics cannot be read\n");
    }
  });

  refuseOtherMethods(app, "/metrics");
  done();
};
