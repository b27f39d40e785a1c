import { SILENT_LOG } from "../client/connections/silent-log.ts";
import { createNamespace } from "../client/namespace.ts";
import { pathText } from "../client/object-path.ts";
import type { Layer } from "../config/layers.ts";
import type { Environment } from "../config/option-spec.ts";
import { openBackend } from "../gateway/backends/open-backend.ts";
import { contextsPath, readConnection, readContexts } from "./contexts.ts";

/** Longest wait for a server, in milliseconds: a shell is blocked meanwhile. */
const PATIENCE_MS = 1_000;
/** Most names that are asked for. */
const MOST_NAMES = 500;

type Offer = (word: string, layers: readonly Layer[], environment: Environment) => Promise<readonly string[]>;

/** Offers for a value, by its placeholder. */
const OFFERS: Readonly<Record<string, Offer>> = {
  CONTEXT: async (_word, _layers, environment) =>
    Object.keys((await readContexts(contextsPath(environment))).contexts),
  NAMESPACE: offerPaths,
  PATH: offerPaths,
  TABLE: offerPaths,
  "TABLE...": offerPaths,
};

/**
 * Returns the values that begin like a word; undefined if nothing is known of the kind of value. A server that does not answer soon
 * offers nothing.
 *
 * @param name placeholder of the value
 */
export async function offersOf(
  name: string,
  word: string,
  layers: readonly Layer[],
  environment: Environment,
): Promise<readonly string[] | undefined> {
  if (!Object.hasOwn(OFFERS, name)) return undefined;
  const offers = (await OFFERS[name]?.(word, layers, environment).catch(() => [])) ?? [];
  return offers.filter((each) => each.startsWith(word));
}

/** Offers the namespaces and tables beside a path. A directory is not opened, which would take longer than a shell may wait. */
async function offerPaths(word: string, layers: readonly Layer[], environment: Environment) {
  const options = await readConnection(layers, environment);
  if (options.backend !== "rest" && options.backend !== "grpc") return [];
  await using namespace = createNamespace(await openBackend(options, { log: SILENT_LOG }));
  const id = word.split("/").slice(0, -1);
  const call = { signal: AbortSignal.timeout(PATIENCE_MS) };
  const [{ namespaces }, { tables }] = await Promise.all([
    namespace.listNamespaces({ id, limit: MOST_NAMES }, call),
    namespace.listTables({ id, limit: MOST_NAMES, includeDeclared: true }, call),
  ]);
  return [
    ...namespaces.map((name) => `${pathText([...id, name])}/`),
    ...tables.map((name) => pathText([...id, name])),
  ];
}
