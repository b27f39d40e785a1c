import type { FastifyInstance, FastifyPluginCallback, FastifyReply, FastifyRequest } from "fastify";
import { LanceError } from "../namespace/errors.ts";
import { type ConnectOptions, connectPlugin, createUnknownMethod } from "./connect.ts";
import { refusalOf } from "./rest/serve.ts";
import {
  createUnknownPath,
  openExchange,
  type RequestWithExchange,
  type RestOptions,
  restPlugin,
} from "./rest.ts";
import { requestIdOf } from "./rpc.ts";

/** What {@link httpWires} needs. */
export type HttpWiresOptions = RestOptions & ConnectOptions;

/**
 * REST, Connect and gRPC-Web as one plugin of Fastify, below any prefix. Hooks of the application run before them.
 *
 * Identifiers are as long as they are and are percent-encoded: the application's `maxParamLength` has to allow for that.
 */
export const httpWires: FastifyPluginCallback<HttpWiresOptions> = (app, options, done) => {
  app.decorateRequest("exchange", null);
  app.setGenReqId(({ headers }) => requestIdOf(headers["x-request-id"]));
  passBodiesOn(app);
  app.setErrorHandler(createErrorHandler(options));

  const unknownMethod = createUnknownMethod(options);
  const unknownPath = createUnknownPath(options);
  app.setNotFoundHandler((request, reply) => unknownMethod(request, reply) ?? unknownPath(request, reply));

  app.register(restPlugin, options);
  app.register(connectPlugin, options);
  done();
};

/** Bodies are read within the bounds of a call, once it is known what the route takes: here they pass as they are. */
export function passBodiesOn(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", (_request, payload, done) => done(null, payload));
}

/** Creates what answers with the JSON of an error, whoever has thrown it. */
export function createErrorHandler(options: HttpWiresOptions) {
  return (thrown: unknown, request: FastifyRequest, reply: FastifyReply): void => {
    const isOpen = (request as RequestWithExchange).exchange != null;
    const exchange = openExchange(request, reply, options);
    // Whoever throws an error of the table has noted it.
    if (!isOpen && !(thrown instanceof LanceError)) options.refused?.(refusalOf(exchange, thrown));
    exchange.fail(thrown);
  };
}
