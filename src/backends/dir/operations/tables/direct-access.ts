import type { Call } from "../../../../namespace/call/call.ts";
import type { TableContext } from "../../catalog/catalog-context.ts";
import type { StorageOptions } from "../../stores/storage-options.ts";
import type { DirectAccessContext } from "../context.ts";

/** Whether clients must call CreateTableVersion; a table's own property overrides the setting of the catalog. */
export function commitsHere(
  { managedVersioning }: DirectAccessContext,
  properties: Readonly<Record<string, string>>,
): boolean {
  const own = properties["table_version_tracking_enabled"];
  return own === undefined ? managedVersioning : own === "true";
}

/**
 * Returns the credentials for the directory of a table that an answer carries: none if the request or the operator
 * does not want any.
 *
 * @param path the absolute path, as in answers
 * @throws LanceError if they cannot be issued
 */
export async function credentialsFor(
  { vendor, mostVended, store }: DirectAccessContext & Pick<TableContext, "store">,
  path: string,
  { vendCredentials = true }: { readonly vendCredentials?: boolean | undefined },
  call: Pick<Call, "may">,
): Promise<StorageOptions> {
  return vendor === undefined || !vendCredentials ? {} : vendor.vend(call, store.keyOf(path), mostVended);
}

/**
 * Returns the fields by which descriptions and declarations say how clients open the storage, and how they commit:
 * `managedVersioning` is true when writers must call CreateTableVersion, and absent otherwise.
 */
export function directAccess(
  context: DirectAccessContext,
  properties: Readonly<Record<string, string>>,
  credentials: StorageOptions = {},
): { storageOptions: Record<string, string>; managedVersioning?: true } {
  return {
    storageOptions: { ...context.clientStorageOptions, ...credentials },
    ...(commitsHere(context, properties) && { managedVersioning: true }),
  };
}
