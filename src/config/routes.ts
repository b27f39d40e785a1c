import { hasDotSegment } from "../namespace/operations/path-value.ts";
import type { Route } from "../pipeline/call/route.ts";
import { checkKeys, type Section, subsection, textAt } from "./config-file.ts";
import { UsageError } from "./option-spec.ts";

/** Routes of the configuration file, and the prefix of a database's name in a path. */
export interface Routes {
  readonly routes: readonly Route[];
  readonly pathPrefix: string | undefined;
}

/** Default routes. */
const USUAL: Routes = { routes: [{ by: "header" }, { by: "path" }], pathPrefix: "/db" };

const PREFIX = /^(?:\/[A-Za-z0-9_.~-]+)+$/;
/** Paths of the probes and the protocols. */
const TAKEN = /^\/(?:v1|healthz|readyz|(?:lance|grpc)\..*)(?:\/|$)/;
const HOST = /^(?:\*\.)?[a-z0-9.-]+$/;

type Kind = Route["by"];

const READERS: Readonly<Record<Kind, (section: Section, databases: readonly string[]) => Route>> = {
  header: (section) => plain(section, "header"),
  namespace: (section) => plain(section, "namespace"),
  path: (section) => plain(section, "path", "prefix"),
  host(section, databases) {
    checkKeys(section, ["by", "hosts"]);
    const hosts = subsection(section, "hosts");
    if (hosts === undefined) throw new UsageError(`${section.at}hosts is missing`);
    for (const host in hosts.entries) {
      if (!HOST.test(host)) {
        throw new UsageError(`${hosts.at}${host} must be a host in lower case, or such as *.example.com`);
      }
      const name = textAt(hosts, host);
      if (name === undefined || !databases.includes(name)) {
        throw new UsageError(`${hosts.at}${host} must be one of ${databases.join(", ")}`);
      }
    }
    return { by: "host", hosts: hosts.entries as Readonly<Record<string, string>> };
  },
};

/**
 * Reads the routes of a configuration file. Default: by header and by path.
 *
 * @throws UsageError
 */
export function readRoutes(
  file: Section,
  sections: readonly Section[],
  databases: readonly string[],
): Routes {
  if (sections.length === 0) return USUAL;
  const routes = sections.map((section) => {
    const by = textAt(section, "by");
    if (by === undefined || !Object.hasOwn(READERS, by)) {
      throw new UsageError(`${section.at}by must be one of ${Object.keys(READERS).sort().join(", ")}`);
    }
    return READERS[by as Kind](section, databases);
  });
  const kinds = routes.map(({ by }) => by);
  if (new Set(kinds).size < kinds.length)
    throw new UsageError(`${file.at}routes must differ in what they go by`);
  const path = sections[kinds.indexOf("path")];
  return { routes, pathPrefix: path && prefixOf(path) };
}

function plain<B extends "header" | "path" | "namespace">(
  section: Section,
  by: B,
  ...further: readonly string[]
) {
  checkKeys(section, ["by", ...further]);
  return { by };
}

function prefixOf(section: Section): string {
  const prefix = textAt(section, "prefix") ?? (USUAL.pathPrefix as string);
  if (PREFIX.test(prefix) && !TAKEN.test(prefix) && !hasDotSegment(prefix)) return prefix;
  throw new UsageError(
    `${section.at}prefix must be a path of its own such as /db, not ${JSON.stringify(prefix)}`,
  );
}
