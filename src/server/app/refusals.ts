import type { IncomingMessage } from "node:http";
import type { FastifyInstance, FastifyRequest } from "fastify";
import type { LanceError } from "../../namespace/errors.ts";
import type { NoteRefusal } from "../../pipeline/records/refusals.ts";
import type { RefuseCall } from "../../wires/connect/plugin.ts";
import { withoutQuery } from "../../wires/rest/http.ts";

/** Probes are answered under any host: they reveal only whether the process runs. */
const PROBES: ReadonlySet<string> = new Set(["/healthz", "/readyz"]);

/** Requests that get an error whatever their target. */
export interface Refusals {
  /**
   * Marks a request before Fastify gets it.
   *
   * @param exceptProbes whether probes are answered nevertheless. Default: false.
   */
  add(request: IncomingMessage, error: LanceError, exceptProbes?: boolean): void;
}

/** Options of {@link addRefusals}. */
export interface RefusalsOptions {
  /** Called for requests that are refused as REST. */
  readonly refused?: NoteRefusal | undefined;
  readonly refuseCall: RefuseCall;
}

/** Adds the hook that refuses marked requests, before all other hooks. */
export function addRefusals(app: FastifyInstance, { refused, refuseCall }: RefusalsOptions): Refusals {
  const refusals = new WeakMap<object, { readonly error: LanceError; readonly exceptProbes: boolean }>();

  app.addHook("onRequest", (request, reply, next) => {
    const found = refusals.get(request.raw);
    if (found === undefined || (found.exceptProbes && isProbe(request))) return next();
    if (!refuseCall(request, reply, found.error)) next(refuse(request, found.error, refused));
  });

  return { add: (request, error, exceptProbes = false) => refusals.set(request, { error, exceptProbes }) };
}

/** Whether a request is for a probe. */
export function isProbe(request: FastifyRequest): boolean {
  return PROBES.has(pathOf(request));
}

/** Returns the path of a request as it was sent. */
export function pathOf({ originalUrl }: FastifyRequest): string {
  return withoutQuery(originalUrl);
}

/**
 * Records that a request is refused before a protocol handles it.
 *
 * @returns the error, with which the hook ends.
 */
export function refuse(
  request: FastifyRequest,
  error: LanceError,
  refused: NoteRefusal | undefined,
): LanceError {
  const { id: requestId, raw } = request;
  refused?.({ protocol: "http", code: error.kind, requestId, path: pathOf(request), headers: raw.headers });
  return error;
}
