import type { Call } from "./call.ts";

/**
 * Property of a namespace of the root that makes it a database: calls that name it by a header are about what is in it
 * (docs/adr/0023). Its value is `true`.
 */
export const DATABASE_PROPERTY = "lance_gateway.database";

/** Entry of a request's context that says of what kind its object has to be. */
const KIND_ENTRY = "lance_gateway.kind";

/** Context of requests about namespaces of the root that have to be databases: they create, describe and list no others. */
export const OF_DATABASES: Readonly<Record<string, string>> = { [KIND_ENTRY]: "database" };

/** Whether a request is about databases, if its object is a namespace of the root. */
export function concernsDatabases(context: Readonly<Record<string, string>>): boolean {
  return context[KIND_ENTRY] === OF_DATABASES[KIND_ENTRY];
}

/** Whether a namespace of the root with these properties is a database. */
export function isDatabase(properties: Readonly<Record<string, string>> | undefined): boolean {
  return properties?.[DATABASE_PROPERTY] === "true";
}

/** The databases of a backend that are namespaces of its root. */
export interface RootDatabases {
  /** Whether a database of the name exists, as of every commit that ended before the call. */
  has(name: string, call: Call): boolean | Promise<boolean>;
  /**
   * Puts the name of a database before the table that a view's query reads. Default: views in a database are Unsupported.
   *
   * @throws LanceError InvalidInput for a query that the backend cannot read
   */
  enterQuery?(query: string, database: string): string;
  /** Removes what {@link enterQuery} has put into a query. */
  leaveQuery?(query: string, database: string): string;
}

/**
 * Ending of the hosts by which LanceDB's clients name a database where their region is `local`. They send the host
 * `NAME.local.api.lancedb.com` to whatever address the server has, and no page can have such a host as its own.
 */
export const LOCAL_REGION = ".local.api.lancedb.com";

const HOST = /^(.+)\.local\.api\.lancedb\.com\.?(?::\d*)?$/i;

/** Returns the database that a host of the region `local` names, with or without a port; undefined for other hosts. */
export function databaseOfRegion(host: string | undefined): string | undefined {
  return host === undefined ? undefined : HOST.exec(host)?.[1];
}
