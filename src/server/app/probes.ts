import type { FastifyInstance, FastifyPluginCallback } from "fastify";

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
