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
