import { LanceError } from "../namespace/errors.ts";
import type { NamespaceFactory } from "./implementation.ts";
import { createNamespace, type Namespace } from "./namespace.ts";
import type { Properties } from "./properties.ts";
import type { LoadLanceDb } from "./tables.ts";

const factories = new Map<string, NamespaceFactory>();

/**
 * Registers an implementation under a name for {@link connect}, replacing any other of that name.
 *
 * @param name for example `glue`.
 */
export function registerNamespace(name: string, factory: NamespaceFactory): void {
  factories.set(name, factory);
}

/**
 * Connects to a catalog by the name of an implementation.
 *
 * @throws LanceError InvalidInput, if the name is unknown or a property is missing, unknown or wrong; and every error
 *   of the implementation.
 */
export async function connectByName(
  name: string,
  properties: Properties,
  load?: LoadLanceDb,
): Promise<Namespace> {
  const factory = factories.get(name);
  if (factory === undefined) {
    const known = [...factories.keys()].map((known) => JSON.stringify(known)).join(", ");
    throw new LanceError(
      "InvalidInput",
      `no namespace implementation ${JSON.stringify(name)}; there are ${known}`,
    );
  }
  return createNamespace(await factory(properties), load);
}
