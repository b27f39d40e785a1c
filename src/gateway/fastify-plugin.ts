import type { FastifyInstance, FastifyPluginCallback } from "fastify";
import { type Logger, pino } from "pino";
import { readServeOptions } from "../config/serve-options.ts";
import { LanceNamespaceService } from "../gen/lance/namespace/v1/service_pb.ts";
import type { Backend } from "../namespace/lance-namespace.ts";
import type { Interceptor } from "../pipeline/call/interceptor.ts";
import { findRepeatedCredential } from "../server/requests/request-head.ts";
import { createRefuseCall } from "../wires/connect/plugin.ts";
import { httpWires } from "../wires/http-wires.ts";
import { serviceRpcs } from "../wires/rpc.ts";
import { createApi } from "./api.ts";
import type { WireOptions } from "./compose.ts";
import { type EventOptions, openAnnouncements } from "./events/open-webhooks.ts";

/** Options of {@link lanceGateway}. Limits and webhooks have the same defaults as in `lance-gateway serve`. */
export interface LanceGatewayOptions
  extends Partial<
    EventOptions &
      Pick<
        WireOptions,
        | "maxMessageBytes"
        | "maxUploadBytes"
        | "maxBufferedBytes"
        | "maxConcurrentCalls"
        | "defaultDeadlineMs"
        | "silenceMs"
      >
  > {
  readonly backend: Backend;
  /** Interceptors that every call passes, in order. Default: none. */
  readonly interceptors?: readonly Interceptor[];
  /** Default: nothing is logged. */
  readonly log?: Logger;
}

export type { WebhookOption } from "../config/options/events.ts";

/** Names of objects are segments of paths, which Fastify limits to 100 characters by default. */
const SHORT_PARAMETER = 1_000;

/**
 * Fastify plugin that serves a backend through REST, Connect and gRPC-Web in an application, below the `prefix` of its
 * registration. Hooks of the application run before a call. The application closes the backend when it closes.
 *
 * Native gRPC needs a port of its own, which `createGateway` opens.
 */
export const lanceGateway: FastifyPluginCallback<LanceGatewayOptions> = (app, options, done) => {
  warnOfShortParameters(app.initialConfig.routerOptions?.maxParamLength);
  mount(app, options).then(() => done(), done);
};

async function mount(app: FastifyInstance, options: LanceGatewayOptions): Promise<void> {
  const { backend, interceptors, log = pino({ level: "silent" }) } = options;
  const limits = { ...readServeOptions([]), ...options };
  const { dispatcher, announcements } = await openAnnouncements(limits, { log });
  const databases = new Map([[undefined, { backend, limits }]]);
  const { maxBufferedBytes } = limits;
  const api = createApi({ databases, interceptors, announcements, maxBufferedBytes, log });
  const rpcs = serviceRpcs(LanceNamespaceService, api.service);
  // This instance already has the prefix, so the options must not apply it again.
  const wires = { ...limits, ...api, log, rpcs, prefix: "" };
  const refuseCall = createRefuseCall(wires);
  app.addHook("onRequest", (request, reply, next) => {
    const fault = findRepeatedCredential(request.raw.rawHeaders);
    if (fault === undefined || !refuseCall(request, reply, fault)) next(fault);
  });
  app.register(httpWires, wires);
  app.addHook("onClose", () => backend.close());
  app.addHook("onClose", () => dispatcher?.close());
}

function warnOfShortParameters(maxParamLength = 100): void {
  if (maxParamLength >= SHORT_PARAMETER) return;
  process.emitWarning(
    `tables whose names have more than ${maxParamLength} characters cannot be reached; give fastify() routerOptions.maxParamLength`,
    { code: "LANCE_GATEWAY_SHORT_PARAMETERS" },
  );
}
