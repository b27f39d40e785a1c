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
