import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import type { ServerHttp2Stream } from "node:http2";
import type { Readable, Writable } from "node:stream";
import type { AccessEntry, NoteAccess } from "../pipeline/access-entry.ts";
import type { NoteRefusal, Refusal } from "../pipeline/refusals.ts";
import { type Arrival, setArrival } from "../wires/arrival.ts";
import { withoutQuery } from "../wires/rest/http.ts";
import type { FindClient } from "./clients.ts";
import { meter, type Traffic } from "./meter.ts";

/** Account of the requests of a server. */
export interface Arrivals {
  /** Notes a request of HTTP/1.1, or of HTTP/2 through its compatibility API, before anything reads it. */
  http(request: IncomingMessage, response: ServerResponse): void;
  /** Notes a stream of native gRPC. */
  stream(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): void;
  readonly refused: NoteRefusal;
}

/** Options of {@link createArrivals}. */
export interface ArrivalsOptions {
  readonly findClient: FindClient;
  /** Called at the end of each request. Default: requests are not noted. */
  readonly note?: NoteAccess | undefined;
  readonly refused?: NoteRefusal | undefined;
}

type Noted = Arrival & Traffic & { refusal: Refusal | undefined };

/** Creates the account: it finds the client of each request, and notes the request at its end. */
export function createArrivals({ findClient, note, refused }: ArrivalsOptions): Arrivals {
  const noted = new WeakMap<object, Noted>();

  function open(headers: IncomingHttpHeaders, peer: string | undefined): Noted {
    const client = findClient(peer, headers);
    const arrival: Noted = { client, call: undefined, refusal: undefined, received: 0, sent: 0 };
    setArrival(headers, arrival);
    if (note !== undefined) noted.set(headers, arrival);
    return arrival;
  }

  function finish(arrival: Noted, started: number, request: Pick<AccessEntry, "method" | "path" | "http">) {
    return (answer: Pick<AccessEntry, "status" | "finished">, headers: IncomingHttpHeaders): void => {
      const { client, call, refusal, received, sent } = arrival;
      const seconds = (performance.now() - started) / 1000;
      const userAgent = headers["user-agent"];
      note?.({ ...request, ...answer, client, userAgent, headers, call, refusal, received, sent, seconds });
    };
  }

  return {
    http(request, response) {
      const { headers, method, httpVersion } = request;
      const arrival = open(headers, request.socket.remoteAddress);
      if (note === undefined) return;
      meter(request, response, arrival);
      const path = withoutQuery(request.url ?? "");
      const end = finish(arrival, performance.now(), { method, path, http: httpVersion });
      response.on("close", () => {
        const { headersSent, statusCode, writableFinished } = response;
        end({ status: headersSent ? statusCode : undefined, finished: writableFinished }, headers);
      });
    },

    stream(stream, headers) {
      const arrival = open(headers, stream.session?.socket.remoteAddress);
      if (note === undefined) return;
      meter(stream as unknown as Readable, stream as unknown as Writable, arrival);
      const [method, path] = [headers[":method"] as string, withoutQuery(String(headers[":path"] ?? ""))];
      const end = finish(arrival, performance.now(), { method, path, http: "2.0" });
      stream.on("close", () => {
        const status = stream.headersSent ? Number(stream.sentHeaders[":status"]) : undefined;
        end({ status, finished: stream.rstCode === 0 }, headers);
      });
    },

    refused(refusal) {
      refused?.(refusal);
      const arrival = refusal.headers && noted.get(refusal.headers);
      if (arrival !== undefined) arrival.refusal = refusal;
      // Nothing else becomes of bytes that are not a request.
      else if (refusal.headers === undefined && refusal.code !== "Cancelled")
        note?.({ client: refusal.peer, refusal, received: 0, sent: 0, finished: true, seconds: 0 });
    },
  };
}
