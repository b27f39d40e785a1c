import type { Kind } from "./beside.ts";
import { CATALOG } from "./catalog.ts";
import { DOCUMENTS } from "./documents.ts";
import { ROWS } from "./rows.ts";
import { SEARCHES } from "./searches.ts";
import { TABLES } from "./tables.ts";

/** Kinds of work that users of LanceDB's client in Node do, by name. */
export const KINDS: Readonly<Record<string, Kind>> = {
  ...ROWS,
  ...SEARCHES,
  ...TABLES,
  ...CATALOG,
  ...DOCUMENTS,
};
