import { SILENT_LOG } from "../../client/connections/silent-log.ts";
import { LanceError } from "../../client/exports.ts";
import { createNamespace, type Namespace } from "../../client/namespace.ts";
import type { OptionSpec, OptionTable } from "../../config/option-spec.ts";
import { CLIENT_OPTIONS } from "../../config/options/client.ts";
import { SERVE_OPTIONS, type ServeOptions } from "../../config/options/groups.ts";
import { openBackend, prepareEngine } from "../../gateway/backends/open-backend.ts";
import type { Backend } from "../../namespace/lance-namespace.ts";
import { placeOf, requireRoot } from "../place.ts";
import { CallFailure } from "../terminal/failure.ts";

/** The options that say which data a connection is to; they mean what they mean for `serve`. */
export const PLACE_OPTIONS: OptionTable = Object.fromEntries(
  Object.entries<OptionSpec>(SERVE_OPTIONS).filter(([, spec]) => spec.place),
);

/** The options that say which catalog a command is about. */
export const CONNECTION_OPTIONS: OptionTable = { ...CLIENT_OPTIONS, ...PLACE_OPTIONS };

/**
 * Access of a command to a catalog. With `read`, a command leaves a directory as it is: it finishes no interrupted changes and creates
 * nothing. With `wait`, it takes over the jobs of processes that have ended, so that it does not wait for ever; any other command would
 * break them off when it ends.
 */
export type CatalogAccess = "read" | "change" | "create" | "wait";

/** A connection to a catalog. */
export interface Connected {
  readonly namespace: Namespace;
  readonly backend: Backend;
}

/**
 * Connects, works, and closes.
 *
 * @param access a directory that is missing is made for `create` alone.
 * @throws Error with one clear line, which names the address if the server cannot be reached.
 */
export async function withNamespace<T>(
  options: ServeOptions,
  access: CatalogAccess,
  work: (connected: Connected) => Promise<T>,
): Promise<T> {
  if (options.backend === "dir" && access !== "create")
    await requireRoot(options.root, "--root, --uri, --address or --context");
  prepareEngine();
  try {
    const readOnly = options.readOnly || access === "read";
    const backend = await openBackend(
      { ...options, readOnly },
      { log: SILENT_LOG, takesOver: access === "wait" },
    );
    await using namespace = createNamespace(backend);
    return await work({ namespace, backend });
  } catch (thrown) {
    if (!(thrown instanceof LanceError)) throw thrown;
    throw new CallFailure(thrown, placeOf(options), options.backend !== "dir");
  }
}
