import { stat } from "node:fs/promises";
import { resolve } from "node:path";
import { UsageError } from "../config/option-spec.ts";
import type { ServeOptions } from "../config/options/groups.ts";
import { redactText } from "../observability/log/redact.ts";

/** Returns the place of the data for people, without credentials. */
export function placeOf(options: ServeOptions): string {
  switch (options.backend) {
    case "dir":
      return options.root.includes("://") ? redactText(options.root) : resolve(options.root);
    case "rest":
      return options.uris.map(withoutCredentials).join(", ");
    case "grpc":
      return options.addresses.join(", ");
    case "glue":
    case "polaris":
    case "lakekeeper":
    case "unity":
      return foreignPlaceOf(options);
    default:
      return options.backend;
  }
}

/** Returns the name of a foreign catalog: its kind, address and warehouse. */
function foreignPlaceOf({ backend, uris, warehouse, warehouseNamespace = [] }: ServeOptions): string {
  const names = [...(warehouse === undefined ? [] : [warehouse]), ...warehouseNamespace];
  const parts = [backend, ...uris.map(withoutCredentials), names.join("$")];
  return parts.filter((part) => part !== "").join(" ");
}

/**
 * Checks that the root of a command exists. Opening it finds everything else that is wrong with it.
 *
 * @param options the options that name another one, for people
 * @throws UsageError for a directory that is missing
 */
export async function requireRoot(root: string, options: string): Promise<void> {
  if (root.includes("://")) return;
  await stat(root).catch(({ code }: NodeJS.ErrnoException) => {
    if (code === "ENOENT" || code === "ENOTDIR")
      throw new UsageError(`there is no directory ${root}; ${options} say where to look`);
  });
}

function withoutCredentials(uri: string): string {
  const parsed = URL.parse(uri);
  return parsed === null ? uri : `${parsed.origin}${parsed.pathname}`;
}
