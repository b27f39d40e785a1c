import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import type { ServerHttp2Stream } from "node:http2";
import { BlockList, isIP } from "node:net";
import type { Readable, Writable } from "node:stream";
import type { Call } from "../../namespace/call/call.ts";
import type { AccessEntry, NoteAccess } from "../../pipeline/records/access-entry.ts";
import type { NoteRefusal, Refusal } from "../../pipeline/records/refusals.ts";
import { meterEnd, meterRequest, meterWrites, type Traffic } from "../../runtime/internals/stream-methods.ts";
import { type Arrival, arrivalOf, peerOf, setArrival } from "../../wires/arrival.ts";
import { withoutQuery } from "../../wires/rest/http.ts";

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

/** Creates the account: it finds the client of each request, and notes the request at its end. */
export function createArrivals({ findClient, note, refused }: ArrivalsOptions): Arrivals {
  function open(headers: IncomingHttpHeaders, peer: string | undefined): NotedArrival {
    const arrival = new NotedArrival(headers, findClient(peer, headers));
    setArrival(headers, arrival);
    return arrival;
  }

  return {
    http(request, response) {
      const { headers } = request;
      const arrival = open(headers, peerOf(request.socket).peer);
      if (note === undefined) return;
      arrival.method = request.method;
      arrival.path = withoutQuery(request.url ?? "");
      arrival.http = request.httpVersion;
      meterRequest(request, headers, arrival);
      // An answer to HEAD has no body, whatever is written. Those of HTTP/2 end through their own write.
      if (request.method !== "HEAD") meterWrites(response, arrival);
      if (request.method !== "HEAD" && request.httpVersionMajor === 1) meterEnd(response, arrival);
      response.on("close", () => {
        const { headersSent, statusCode, writableFinished } = response;
        arrival.status = headersSent ? statusCode : undefined;
        arrival.finished = writableFinished;
        note(arrival.end());
      });
    },

    stream(stream, headers) {
      const arrival = open(headers, peerOf(stream.session?.socket).peer);
      if (note === undefined) return;
      arrival.method = String(headers[":method"]);
      arrival.path = withoutQuery(String(headers[":path"] ?? ""));
      arrival.http = "2.0";
      meterRequest(stream as unknown as Readable, headers, arrival);
      meterWrites(stream as unknown as Writable, arrival);
      meterEnd(stream as unknown as Writable, arrival);
      stream.on("close", () => {
        arrival.status = stream.headersSent ? Number(stream.sentHeaders[":status"]) : undefined;
        arrival.finished = stream.rstCode === 0;
        note(arrival.end());
      });
    },

    refused(refusal) {
      refused?.(refusal);
      const arrival = refusal.headers && arrivalOf(refusal.headers);
      if (arrival !== undefined) arrival.refusal = refusal;
      // Nothing else becomes of bytes that are not a request.
      else if (refusal.headers === undefined && refusal.code !== "Cancelled")
        note?.({ client: refusal.peer, refusal, received: 0, sent: 0, finished: true, seconds: 0 });
    },
  };
}

/** A request and what becomes of it; a single object for each, because a busy server makes many. */
class NotedArrival implements Arrival, Traffic, AccessEntry {
  readonly headers: IncomingHttpHeaders;
  readonly client: string | undefined;
  method: string | undefined;
  path: string | undefined;
  http: string | undefined;
  call: Call | undefined;
  refusal: Refusal | undefined;
  status: number | undefined;
  finished = false;
  received = 0;
  sent = 0;
  seconds = 0;
  readonly #started = performance.now();

  constructor(headers: IncomingHttpHeaders, client: string | undefined) {
    this.headers = headers;
    this.client = client;
  }

  get userAgent(): string | undefined {
    return this.headers["user-agent"];
  }

  end(): this {
    this.seconds = (performance.now() - this.#started) / 1000;
    return this;
  }
}

/** Returns the address of a client, given that of its connection, which a Unix socket does not have. */
type FindClient = (peer: string | undefined, headers: IncomingHttpHeaders) => string | undefined;

/** Header in which proxies name their clients. */
export type ClientHeader = "x-forwarded-for" | "forwarded";

/** The peers that connect through a Unix socket, among trusted proxies. */
const UNIX_PEERS = "unix";

const BITS = { 4: 32, 6: 128 } as const;

/**
 * Creates the search for the address of a client behind proxies. Each proxy appends the address from which it was
 * called to `forwarded` (RFC 7239) or `x-forwarded-for`, so the client is the last address that is not a trusted
 * proxy's. A client may have written everything before that, and all of a header that the proxies pass on unchanged.
 *
 * @param trusted networks of the proxies, such as `10.0.0.0/8` or `::1`, and `unix`.
 * @param header the one that the proxies write; the other one does not count.
 */
export function createFindClient(
  trusted: readonly string[],
  header: ClientHeader = "x-forwarded-for",
): FindClient {
  if (trusted.length === 0) return (peer) => peer;
  const isTrusted = createProxyCheck(trusted);

  return (peer, headers) => {
    let client = peer;
    const hops = hopsOf[header](headers);
    while (isTrusted(client)) {
      const hop = hops.pop();
      // A proxy that hides its client is the last that is known.
      if (hop === undefined || isIP(hop) === 0) break;
      client = hop;
    }
    return client;
  };
}

/** Creates the check of whether an address is that of a trusted proxy; undefined is that of a Unix socket. */
export function createProxyCheck(trusted: readonly string[]): (address: string | undefined) => boolean {
  const proxies = new BlockList();
  for (const network of trusted) {
    if (network === UNIX_PEERS) continue;
    const [address = "", prefix] = network.split("/");
    const family = isIP(address) as 4 | 6;
    proxies.addSubnet(address, Number(prefix ?? BITS[family]), `ipv${family}`);
  }
  const trustsUnix = trusted.includes(UNIX_PEERS);
  return (address) =>
    address === undefined ? trustsUnix : proxies.check(address, `ipv${isIP(address) as 4 | 6}`);
}

/** Return the addresses that proxies have noted, the nearest one last. */
const hopsOf: Readonly<Record<ClientHeader, (headers: IncomingHttpHeaders) => string[]>> = {
  "x-forwarded-for": ({ "x-forwarded-for": list = "" }) => elementsOf(list).map(addressIn),
  forwarded: ({ forwarded = "" }) => elementsOf(forwarded).map((element) => addressIn(forIn(element))),
};

function elementsOf(header: string | string[]): string[] {
  const list = String(header);
  return list === "" ? [] : list.split(",");
}

function forIn(element: string): string {
  return /(?:^|;)\s*for\s*=\s*(?:"([^"]*)"|([^;\s]*))/i.exec(element)?.slice(1).find(Boolean) ?? "";
}

/** Returns an address without its port and brackets. */
function addressIn(text: string): string {
  const node = text.trim();
  return /^\[(.*)\](?::\d+)?$/.exec(node)?.[1] ?? /^([\d.]+):\d+$/.exec(node)?.[1] ?? node;
}
