import { LanceError } from "../../namespace/errors.ts";
import { createNamespace, type Namespace } from "../namespace.ts";
import type { LoadLanceDb } from "../tables.ts";
import type { NamespaceFactory, Properties } from "./properties.ts";

/** The implementations that an entry point of the client finds by name. */
export interface Registry {
  /**
   * Registers an implementation under a name for `connect`, replacing any other of that name.
   *
   * @param name for example `glue`.
   */
  registerNamespace(name: string, factory: NamespaceFactory): void;
  /**
   * Connects to a catalog by the name of an implementation.
   *
   * @throws LanceError InvalidInput, if the name is unknown or a property is missing, unknown or wrong; and every error
   *   of the implementation.
   */
  connectByName(name: string, properties: Properties): Promise<Namespace>;
}

/**
 * Creates a registry.
 *
 * @param own the implementations that it begins with, by name.
 * @param load loads `@lancedb/lancedb`, where the platform has it.
 */
export function createRegistry(
  own: Readonly<Record<string, NamespaceFactory>>,
  load?: LoadLanceDb,
): Registry {
  const factories = new Map(Object.entries(own));
  return {
    registerNamespace(name, factory) {
      factories.set(name, factory);
    },
    async connectByName(name, properties) {
      const factory = factories.get(name);
      if (factory === undefined) {
        const known = [...factories.keys()].map((known) => JSON.stringify(known)).join(", ");
        throw new LanceError(
          "InvalidInput",
          `no namespace implementation ${JSON.stringify(name)}; there are ${known}`,
        );
      }
      return createNamespace(await factory(properties), load);
    },
  };
}
