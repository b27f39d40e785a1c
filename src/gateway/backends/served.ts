import { createDatabasesBackend } from "../../backends/databases/index.ts";
import type { Databases } from "../../config/configuration.ts";
import type { Backend } from "../../namespace/lance-namespace.ts";
import type { Database, DatabaseLimits } from "../../pipeline/call/databases.ts";
import type { ServiceOptions } from "../../pipeline/create-service.ts";
import type { Addressing } from "../../server/requests/request-head.ts";

/** Databases, and the routes by which a call selects one. */
export interface Served extends Pick<ServiceOptions, "databases" | "routes"> {
  /** Backends that determine readiness, and that the gateway closes at the end. */
  readonly backends: readonly Backend[];
  readonly addressing?: Addressing;
}

/** Serves an only database. */
export function servedAlone(database: Database): Served {
  return { databases: new Map([[undefined, database]]), backends: [database.backend] };
}

/**
 * Serves several databases by their names.
 *
 * @param limits those of the list of databases, which a route by namespace has at its root.
 */
export function servedByName(
  named: ReadonlyMap<string, Database>,
  { routes, pathPrefix, fallback }: Omit<Databases, "byName">,
  limits: DatabaseLimits,
): Served {
  const root = routes.some(({ by }) => by === "namespace")
    ? { backend: createDatabasesBackend([...named.keys()]), limits }
    : undefined;
  const unnamed = fallback === undefined ? root : named.get(fallback);
  const databases = new Map<string | undefined, Database>(named);
  if (unnamed !== undefined) databases.set(undefined, unnamed);
  const hosts = routes.flatMap((route) => (route.by === "host" ? Object.keys(route.hosts) : []));
  const backends = [...named.values()].map(({ backend }) => backend);
  return { databases, backends, routes, addressing: { pathPrefix, hosts } };
}
