/** Kinds of operations, as roles and policies know them. */
export type Action = "list" | "describe" | "read" | "write" | "manage" | "admin";

/** Kinds of operations that the caller may do to an object. */
export type Permissions = ReadonlySet<string>;

/** Headers that make the gateway tell what the caller may do to the object of the call. */
export const TELL_PERMISSIONS = { headers: { "x-lance-gateway-tell": "permissions" } } as const;

const ENTRY = "header.x-lance-gateway-permissions";
const ALL: readonly Action[] = ["list", "describe", "read", "write", "manage", "admin"];

/** Returns what an answer tells about permissions. A gateway that tells nothing refuses by itself what is not allowed. */
export function permissionsOf({
  context,
}: {
  readonly context: Readonly<Record<string, string>>;
}): Permissions {
  const told = context[ENTRY];
  if (told === undefined) return new Set(ALL);
  return new Set(told.split(", "));
}

const PRINCIPAL = "header.x-lance-gateway-principal";

/** Returns who the caller is, such as `api-key:dashboards`; undefined where callers prove nothing. */
export function principalOf({
  context,
}: {
  readonly context: Readonly<Record<string, string>>;
}): string | undefined {
  const told = context[PRINCIPAL];
  return told === undefined ? undefined : decodeURIComponent(told);
}

const UPLOAD = "header.x-lance-gateway-max-upload-bytes";

/** Returns the most bytes of rows that the gateway takes in an upload; undefined where it does not tell. */
export function mostUploadBytes({
  context,
}: {
  readonly context: Readonly<Record<string, string>>;
}): number | undefined {
  const told = context[UPLOAD];
  return told === undefined ? undefined : Number(told);
}

/** An answer to a call with `TELL_PERMISSIONS`. */
interface Told {
  readonly context: Readonly<Record<string, string>>;
}

const BACKEND = "header.x-lance-gateway-backend";
const STORAGE = "header.x-lance-gateway-storage";
const VERSION = "header.x-lance-gateway-version";
const UNSUPPORTED = "header.x-lance-gateway-unsupported";

/** What people call the catalogs of other services, by the backends' names. */
const CATALOGS: ReadonlyMap<string, string> = new Map([
  ["glue", "AWS Glue"],
  ["polaris", "Apache Polaris"],
  ["lakekeeper", "Lakekeeper"],
  ["unity", "Unity Catalog"],
  ["rest", "another service, over REST"],
  ["grpc", "another service, over gRPC"],
]);

/** What people want to do, by the operation that it takes. */
const ABILITIES: readonly (readonly [operation: string, ability: string])[] = [
  ["queryTable", "read and write rows"],
  ["createTable", "create tables from rows"],
  ["dropTable", "drop tables with their files"],
  ["renameTable", "rename tables"],
  ["createMaterializedView", "create materialized views"],
  ["alterTableBackfillColumns", "backfill columns"],
  ["listTables", "list tables"],
];

/** Returns whose catalog an answer comes from; undefined if it is the gateway's own. */
export function catalogOf({ context }: Told): string | undefined {
  return CATALOGS.get(context[BACKEND] ?? "");
}

/** Returns where the data of a root is; undefined for other objects, and for callers who may not list the root. */
export function storageOf({ context }: Told): string | undefined {
  const told = context[STORAGE];
  return told === undefined ? undefined : decodeURIComponent(told);
}

/** Returns the version of the gateway; undefined where it does not tell. */
export function versionOf({ context }: Told): string | undefined {
  return context[VERSION];
}

/** Returns what a user cannot do in the database of an answer, in words. */
export function inabilitiesOf(told: Told): string[] {
  return ABILITIES.flatMap(([operation, ability]) => (supports(told, operation) ? [] : [ability]));
}

/** Whether the backend of an answer supports an operation. A gateway that tells nothing refuses by itself what is not supported. */
export function supports({ context }: Told, operation: string): boolean {
  return !(context[UNSUPPORTED] ?? "").split(", ").includes(operation);
}
