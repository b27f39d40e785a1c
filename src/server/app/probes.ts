import type { FastifyInstance, FastifyPluginCallback } from "fastify";
import { type LoopPace, UNPACED } from "../../runtime/loop-pace.ts";
import { exchangeOf, isGone } from "../../wires/rest/http.ts";

/** Serves the probes: `/healthz` reports that the process runs, `/readyz` whether it can answer calls now. */
export const probesPlugin: FastifyPluginCallback<{ readiness: { readonly ready: boolean } }> = (
  app,
  { readiness },
  done,
) => {
  app.get("/healthz", (_request, reply) => reply.type("text/plain").send("ok\n"));

  app.get("/readyz", (_request, reply) => {
    reply.type("text/plain");
    return readiness.ready ? reply.send("ok\n") : reply.code(503).send("not ready\n");
  });

  for (const url of ["/healthz", "/readyz"]) refuseOtherMethods(app, url);
  done();
};

/** Answers 405 to every method that does not read the page. */
export function refuseOtherMethods(app: FastifyInstance, url: string): void {
  const method = app.supportedMethods.filter((each) => each !== "GET" && each !== "HEAD");
  app.route({
    method,
    url,
    handler: (_request, reply) =>
      reply.code(405).header("allow", "GET, HEAD").type("text/plain").send("only GET and HEAD\n"),
  });
}

/** Whether the server can answer calls now, for `/readyz` and the gRPC health service. */
export interface Readiness {
  readonly ready: boolean;
  /** Whether the server is shutting down. */
  readonly closed: boolean;
  set(ready: boolean): void;
  /** Calls back after each change, until the returned function is called. */
  subscribe(listener: () => void): () => void;
  /** Makes it permanently not ready, so that nothing waits for it any longer. */
  close(): void;
}

/** Creates a readiness that starts as not ready. */
export function createReadiness(): Readiness {
  const listeners = new Set<() => void>();
  let ready = false;
  let closed = false;

  function change(toReady: boolean, toClosed: boolean): void {
    if (closed || (toReady === ready && !toClosed)) return;
    ready = toReady;
    closed = toClosed;
    for (const listener of [...listeners]) listener();
  }

  return {
    get ready() {
      return ready;
    },
    get closed() {
      return closed;
    },
    set: (toReady) => change(toReady, false),
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    close: () => change(false, true),
  };
}

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
