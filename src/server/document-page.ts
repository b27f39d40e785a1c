import type { FastifyPluginCallback } from "fastify";
import { refuseOtherMethods } from "./probes.ts";

/** Returns the text of the OpenAPI document. */
export type ReadDocument = () => Promise<string>;

/** Serves the OpenAPI document of the REST API. */
export const documentPlugin: FastifyPluginCallback<{ readDocument: ReadDocument }> = (
  app,
  { readDocument },
  done,
) => {
  app.get("/openapi.json", async (_request, reply) =>
    reply.type("application/json").send(await readDocument()),
  );
  refuseOtherMethods(app, "/openapi.json");
  done();
};
