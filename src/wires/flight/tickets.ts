import { randomUUID } from "node:crypto";
import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { type Timestamp, timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type QueryTableRequest, QueryTableRequestSchema } from "../../gen/lance/namespace/v1/query_pb.ts";
import type { Call } from "../../namespace/call/call.ts";
import { DATABASE_HEADERS } from "../../namespace/call/header-names.ts";
import { ownerKey } from "../../namespace/call/owner-key.ts";
import { LanceError } from "../../namespace/errors.ts";
import { createSeal, type Seal } from "../../runtime/seal.ts";

/** How long a ticket is valid, in milliseconds. */
export const TICKET_MS = 15 * 60_000;

/** Content of a ticket. */
export interface TicketContent {
  readonly id: string;
  /** The rows. */
  readonly query: QueryTableRequest;
  /** Key of the caller to whom it belongs. */
  readonly owner: string;
  /** Headers that name the database. */
  readonly database: Readonly<Record<string, string>>;
  /** End of its validity, in epoch milliseconds. */
  readonly expires: number;
}

/** A new ticket. */
export interface NewTicket {
  readonly ticket: { readonly ticket: Uint8Array };
  readonly expirationTime: Timestamp;
}

/** Makes tickets that only their callers may use, and only for a time. */
export interface Tickets {
  /** Makes a ticket for the caller of a call that the pipeline has let through. */
  issue(query: QueryTableRequest, call: Call, database: TicketContent["database"]): NewTicket;
  /** Makes a ticket for the same rows that is valid for longer. */
  renew(content: TicketContent): NewTicket;
  /**
   * Returns the content of a ticket. Whether its caller is the owner is for the pipeline to find out, by {@link Call.heldBy}.
   *
   * @throws LanceError InvalidInput for a ticket that no gateway with the secret has made, and for one that is no longer valid
   */
  open(ticket: Uint8Array): TicketContent;
}

/** Creates tickets. @param secret returns the secret that all gateways of a catalog share, which may change. */
export function createTickets(secret: () => string, now: () => number = Date.now): Tickets {
  let made: { readonly secret: string; readonly seal: Seal } | undefined;

  function sealNow(): Seal {
    const current = secret();
    if (made?.secret !== current) made = { secret: current, seal: createSeal(current, "Flight tickets") };
    return made.seal;
  }
  function write(content: Omit<TicketContent, "expires">): NewTicket {
    const expires = now() + TICKET_MS;
    const query = Buffer.from(toBinary(QueryTableRequestSchema, content.query)).toString("base64");
    const ticket = sealNow().seal(Buffer.from(JSON.stringify({ ...content, query, expires })));
    return { ticket: { ticket }, expirationTime: timestampFromMs(expires) };
  }
  return {
    issue: (query, call, database) => write({ id: randomUUID(), query, owner: ownerKey(call), database }),
    renew: write,
    open(ticket) {
      let text: string;
      try {
        text = sealNow().open(ticket).toString();
      } catch (cause) {
        throw new LanceError("InvalidInput", "the ticket is not from this gateway", { cause });
      }
      const content = JSON.parse(text) as TicketContent & { readonly query: string };
      if (content.expires < now())
        throw new LanceError("InvalidInput", "the ticket has expired; ask for the flight again");
      return { ...content, query: fromBinary(QueryTableRequestSchema, Buffer.from(content.query, "base64")) };
    },
  };
}

/** Returns the headers that name a database. */
export function databaseIn(headers: Readonly<Record<string, string>>): Record<string, string> {
  const names = DATABASE_HEADERS.flatMap((name) => [name, `${name}-prefix`]);
  return Object.fromEntries(names.flatMap((name) => (headers[name] ? [[name, headers[name]]] : [])));
}
