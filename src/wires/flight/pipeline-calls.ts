import {
  create,
  type DescMessage,
  type DescMethodClientStreaming,
  type DescMethodServerStreaming,
  type DescMethodUnary,
  type MessageInitShape,
  type MessageShape,
} from "@bufbuild/protobuf";
import { LanceNamespaceService } from "../../gen/lance/namespace/v1/service_pb.ts";
import { type Call, type Credentials, createCall } from "../../namespace/call/call.ts";
import { ownerKey } from "../../namespace/call/caller-key.ts";
import { isRefused } from "../../namespace/call/reception.ts";
import { isLanceError } from "../../namespace/errors.ts";
import type { Identifier } from "../../namespace/identifier.ts";
import type { AnyMethod, Service } from "../../namespace/service.ts";
import { type FlightHeaders, readFlightHeaders } from "./headers.ts";

/** Facts that a call of the pipeline presents besides its message. */
export interface Presented {
  /** Key of the caller to whom the call's ticket belongs. Default: it has no ticket. */
  readonly heldBy?: string | undefined;
  /** Headers that name the database, in place of the caller's. Default: the caller's. */
  readonly database?: Readonly<Record<string, string>> | undefined;
  /** Key by which the call, sent again, changes nothing more. Default: none. */
  readonly idempotencyKey?: string | undefined;
  /** Ends the call, as the end of the Flight call does. Default: nothing else ends it. */
  readonly signal?: AbortSignal | undefined;
  /** Whether chunks of a download are kept while others are asked for. Default: false. */
  readonly keepsChunks?: boolean | undefined;
  /** Whether nothing else reads the chunks of an upload, so that their memory may be freed as soon as they are copied. Default: false. */
  readonly ownsBody?: boolean | undefined;
}

/** The calls of the pipeline that a Flight call becomes. Each one is authorized, counted and recorded as a request of the caller by any protocol is. */
export interface PipelineCalls {
  /** Namespace that the names of tables begin from. */
  readonly namespacePath: Identifier;
  /** Headers by which the caller names its database. */
  readonly headers: Readonly<Record<string, string>>;
  /** Key that the client chose for its call, which may become several of the pipeline. Default: none. */
  readonly idempotencyKey: string | undefined;
  /** Ends with the Flight call. */
  readonly signal: AbortSignal;
  /**
   * Returns the key of the caller, who needs no rights for it.
   *
   * @throws LanceError the refusal of a caller who is not known
   */
  owner(): Promise<string>;
  /**
   * Passes the limits and the records of the pipeline once, for work that reads no object. The records have it as a listing.
   *
   * @throws LanceError the refusal of a caller who is not known, or has reached a limit
   */
  pass(): Promise<void>;
  unary<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    request: MessageInitShape<I>,
    presented?: Presented,
  ): Promise<{ readonly response: MessageShape<O>; readonly call: Call }>;
  upload<I extends DescMessage, O extends DescMessage>(
    method: DescMethodClientStreaming<I, O>,
    request: MessageShape<I>,
    data: AsyncIterable<Uint8Array>,
    presented?: Presented,
  ): Promise<MessageShape<O>>;
  /** @param begun gets the call, which the pipeline completes before the first message. */
  download<I extends DescMessage, O extends DescMessage>(
    method: DescMethodServerStreaming<I, O>,
    request: MessageShape<I>,
    presented?: Presented,
    begun?: (call: Call) => void,
  ): AsyncIterable<MessageShape<O>>;
}

/** Operation under which the records have a Flight call whose sender is refused before it is read. */
const FIRST = LanceNamespaceService.method.listNamespaces;

/** Identity of a caller whose principal is known. */
const NOBODY: Credentials = { apiKey: undefined, authToken: undefined };

/** Checks the sender of a Flight call before its message is read. */
export function receiveFlight(service: Service): Service["receive"] {
  return ({ method, headers, certificate }) => {
    try {
      const { headers: own } = readFlightHeaders(headers);
      return service.receive?.({ method, headers: own, certificate, hasHeadersOnly: true });
    } catch (refusal) {
      return { refusal, isGuess: false };
    }
  };
}

/**
 * Begins the calls of a Flight call, or of another call that becomes several of the pipeline.
 *
 * @param protocol of the calls. Default: flight
 * @throws LanceError the refusal of a sender that was refused before its message was read, which the pipeline records
 */
export async function beginPipelineCalls(
  service: Service,
  outer: Call,
  protocol: Call["protocol"] = "flight",
): Promise<PipelineCalls> {
  const { reception } = outer;
  const unread: FlightHeaders = { headers: Object.create(null), namespacePath: [] };
  const read = isRefused(reception) ? unread : readFlightHeaders(outer.headers);

  function begin(method: AnyMethod, presented: Presented): Call {
    const { heldBy, database, signal: own, keepsChunks, idempotencyKey, ownsBody = false } = presented;
    const { address, peer, certificate, requestId, deadline, log, cutOff } = outer;
    const signal = own === undefined ? outer.signal : AbortSignal.any([outer.signal, own]);
    const headers: Record<string, string> = Object.assign(Object.create(null), read.headers, database);
    if (idempotencyKey !== undefined) headers["idempotency-key"] = idempotencyKey;
    const call = createCall({
      ...{ method, headers, address, peer, certificate, requestId, deadline, log, signal },
      ...(cutOff && { cutOff }),
      protocol,
      accept: undefined,
      // A chunk has been sent, or copied, before the next one is asked for.
      releasesChunks: keepsChunks !== true,
      ownsBody,
    });
    call.reception = reception;
    call.heldBy = heldBy;
    call.begun = outer.begun = true;
    return call;
  }
  /** Lets the access log know what the Flight call was about. */
  function note(call: Call): void {
    outer.id = call.id;
    outer.database = call.database;
    outer.principal = call.principal;
    outer.outcome = call.outcome;
  }
  async function passAsCaller(): Promise<Call> {
    const call = begin(FIRST, {});
    try {
      await service.unary(FIRST, create(FIRST.input, { id: [...read.namespacePath], limit: 1 }), call);
    } catch (thrown) {
      // A caller that may not list is known all the same.
      if (!isLanceError(thrown, "PermissionDenied")) throw thrown;
    } finally {
      note(call);
    }
    return call;
  }
  let passed: Promise<Call> | undefined;
  const pass = () => {
    passed ??= passAsCaller();
    return passed;
  };
  async function findOwner(): Promise<string> {
    if (reception !== undefined && !isRefused(reception)) return ownerKey({ ...reception, identity: NOBODY });
    return ownerKey(await pass());
  }
  const calls: PipelineCalls = {
    ...read,
    idempotencyKey: outer.headers["idempotency-key"],
    get signal() {
      return outer.signal;
    },
    owner: findOwner,
    async pass() {
      await pass();
    },
    async unary(method, request, presented = {}) {
      const call = begin(method, presented);
      try {
        return { response: await service.unary(method, create(method.input, request), call), call } as never;
      } finally {
        note(call);
      }
    },
    async upload(method, request, data, presented = {}) {
      const call = begin(method, presented);
      try {
        return (await service.upload(method, request, data, call)) as never;
      } finally {
        note(call);
      }
    },
    async *download(method, request, presented = {}, begun) {
      const call = begin(method, presented);
      try {
        begun?.(call);
        yield* service.download(method, request, call) as AsyncIterable<never>;
      } finally {
        note(call);
      }
    },
  };
  if (isRefused(reception)) await calls.unary(FIRST, {});
  return calls;
}
