import type { OptionTable, OptionValues } from "../option-spec.ts";
import { IDENTITY_OPTIONS, VENDING_OPTIONS } from "./access/credentials.ts";
import { SECURITY_OPTIONS, TLS_OPTIONS, TOKEN_OPTIONS } from "./access/security.ts";
import { CATALOG_OPTIONS } from "./catalog.ts";
import { CACHE_OPTIONS, DIRECTORY_OPTIONS } from "./directory.ts";
import { EVENT_OPTIONS } from "./events.ts";
import { FOREIGN_CATALOG_OPTIONS, ROWS_OPTIONS } from "./foreign-catalogs.ts";
import { JOB_ENGINE_OPTIONS } from "./job-engine.ts";
import { CALLER_LIMIT_OPTIONS, LIMIT_OPTIONS } from "./limits.ts";
import { ADMIN_OPTIONS, AUDIT_OPTIONS, OBSERVABILITY_OPTIONS } from "./observability.ts";
import { SERVER_OPTIONS } from "./server.ts";
import { SQL_OPTIONS } from "./sql.ts";
import { RESILIENCE_OPTIONS, UPSTREAM_OPTIONS } from "./upstream.ts";

/** Options of `lance-gateway serve`, by the headings under which help and docs list them. */
export const OPTION_GROUPS = {
  Catalog: CATALOG_OPTIONS,
  Directory: DIRECTORY_OPTIONS,
  "Heavy work": JOB_ENGINE_OPTIONS,
  Cache: CACHE_OPTIONS,
  Server: SERVER_OPTIONS,
  Security: SECURITY_OPTIONS,
  Tokens: TOKEN_OPTIONS,
  TLS: TLS_OPTIONS,
  Observability: OBSERVABILITY_OPTIONS,
  "Admin port": ADMIN_OPTIONS,
  "Audit log": AUDIT_OPTIONS,
  Events: EVENT_OPTIONS,
  "Credential vending": VENDING_OPTIONS,
  Limits: LIMIT_OPTIONS,
  "Limits of callers": CALLER_LIMIT_OPTIONS,
  SQL: SQL_OPTIONS,
  Upstream: UPSTREAM_OPTIONS,
  "Foreign catalogs": FOREIGN_CATALOG_OPTIONS,
  "Rows of an upstream": ROWS_OPTIONS,
  "Upstream identity": IDENTITY_OPTIONS,
  "Upstream resilience": RESILIENCE_OPTIONS,
} as const satisfies Readonly<Record<string, OptionTable>>;

/** Options of `lance-gateway serve`. */
export const SERVE_OPTIONS = {
  ...CATALOG_OPTIONS,
  ...DIRECTORY_OPTIONS,
  ...JOB_ENGINE_OPTIONS,
  ...CACHE_OPTIONS,
  ...SERVER_OPTIONS,
  ...SECURITY_OPTIONS,
  ...TOKEN_OPTIONS,
  ...TLS_OPTIONS,
  ...OBSERVABILITY_OPTIONS,
  ...ADMIN_OPTIONS,
  ...AUDIT_OPTIONS,
  ...EVENT_OPTIONS,
  ...VENDING_OPTIONS,
  ...LIMIT_OPTIONS,
  ...CALLER_LIMIT_OPTIONS,
  ...SQL_OPTIONS,
  ...UPSTREAM_OPTIONS,
  ...FOREIGN_CATALOG_OPTIONS,
  ...ROWS_OPTIONS,
  ...IDENTITY_OPTIONS,
  ...RESILIENCE_OPTIONS,
} as const satisfies OptionTable;

/** Parsed options of `lance-gateway serve`; a repeatable option has a list, which may be empty. */
export type ServeOptions = OptionValues<typeof SERVE_OPTIONS>;
