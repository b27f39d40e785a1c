import { randomUUID } from "node:crypto";
import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { type Timestamp, timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type QueryTableRequest, QueryTableRequestSchema } from "../../gen/lance/namespace/v1/query_pb.ts";
import { DATABASE_HEADERS } from "../../namespace/call/headers.ts";
import { LanceError } from "../../namespace/errors.ts";
import type { Identifier } from "../../namespace/identifier.ts";
import { createSeal, type Seal } from "../../runtime/seal.ts";

/** How long a ticket is valid, in milliseconds. */
export const TICKET_MS = 15 * 60_000;

/** How long the handle of a prepared statement is valid, in milliseconds. */
export const HANDLE_MS = 24 * 3_600_000;

/** A statement in SQL, with what it needs to run. */
export interface Statement {
  readonly text: string;
  /** Namespace of names that name none. */
  readonly namespacePath: Identifier;
  /** Parameters, as an Arrow IPC stream. Default: none. */
  readonly parameters?: Uint8Array | undefined;
}

/** The rows that a ticket reads. */
export type TicketRows =
  | { readonly kind: "table"; readonly query: QueryTableRequest }
  | { readonly kind: "statement"; readonly statement: Statement }
  /** The handle of a prepared statement, which is not read itself. */
  | { readonly kind: "prepared"; readonly statement: Statement }
  /** A command of Flight SQL about the catalog, as it was sent. */
  | { readonly kind: "metadata"; readonly command: Uint8Array; readonly namespacePath: Identifier };

/** Content of a ticket. */
export interface TicketContent {
  readonly id: string;
  readonly rows: TicketRows;
  /** Key of the caller to whom it belongs. */
  readonly owner: string;
  /** Headers that name the database. */
  readonly database: Readonly<Record<string, string>>;
  /** End of its validity, in epoch milliseconds. */
  readonly expires: number;
}

/** A new ticket. */
export interface NewTicket {
  /** Id of its content. */
  readonly id: string;
  readonly ticket: { readonly ticket: Uint8Array };
  readonly expirationTime: Timestamp;
}

/** Makes tickets that only their callers may use, and only for a time. */
export interface Tickets {
  /** Makes a ticket. @param owner key of a caller whom the pipeline knows */
  issue(rows: TicketRows, owner: string, database: TicketContent["database"]): NewTicket;
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
  function write({ rows, ...content }: Omit<TicketContent, "expires">): NewTicket {
    const expires = now() + (rows.kind === "prepared" ? HANDLE_MS : TICKET_MS);
    const ticket = sealNow().seal(
      Buffer.from(JSON.stringify({ ...content, rows: writeRows(rows), expires })),
    );
    return { id: content.id, ticket: { ticket }, expirationTime: timestampFromMs(expires) };
  }
  return {
    issue: (rows, owner, database) => write({ id: randomUUID(), rows, owner, database }),
    renew: write,
    open(ticket) {
      let text: string;
      try {
        text = sealNow().open(ticket).toString();
      } catch (cause) {
        throw new LanceError("InvalidInput", "the ticket is not from this gateway", { cause });
      }
      const content = JSON.parse(text) as Omit<TicketContent, "rows"> & { readonly rows: WrittenRows };
      if (content.expires < now())
        throw new LanceError("InvalidInput", "the ticket has expired; ask for the flight again");
      return { ...content, rows: readRows(content.rows) };
    },
  };
}

/** Rows as JSON has them. */
interface WrittenRows {
  readonly kind: TicketRows["kind"];
  /** Binary content, in base64. */
  readonly bytes?: string | undefined;
  readonly text?: string;
  readonly namespacePath?: Identifier;
}

function writeRows(rows: TicketRows): WrittenRows {
  const { kind } = rows;
  switch (kind) {
    case "table":
      return { kind, bytes: base64(toBinary(QueryTableRequestSchema, rows.query)) };
    case "metadata":
      return { kind, bytes: base64(rows.command), namespacePath: rows.namespacePath };
    default: {
      const { text, namespacePath, parameters } = rows.statement;
      return { kind, text, namespacePath, bytes: parameters && base64(parameters) };
    }
  }
}

function readRows({ kind, bytes, text = "", namespacePath = [] }: WrittenRows): TicketRows {
  const binary = Buffer.from(bytes ?? "", "base64");
  switch (kind) {
    case "table":
      return { kind, query: fromBinary(QueryTableRequestSchema, binary) };
    case "metadata":
      return { kind, command: binary, namespacePath };
    default:
      return {
        kind,
        statement: { text, namespacePath, parameters: bytes === undefined ? undefined : binary },
      };
  }
}

const base64 = (bytes: Uint8Array) => Buffer.from(bytes).toString("base64");

/** Returns the headers that name a database. */
export function databaseIn(headers: Readonly<Record<string, string>>): Record<string, string> {
  const names = DATABASE_HEADERS.flatMap((name) => [name, `${name}-prefix`]);
  return Object.fromEntries(names.flatMap((name) => (headers[name] ? [[name, headers[name]]] : [])));
}
