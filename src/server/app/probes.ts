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
