/** The client for browsers, and for other platforms that have fetch but not Node's modules: REST and Connect. */

import { LanceError } from "../namespace/errors.ts";
import { type ConnectProperties, openConnect } from "./connections/connect.ts";
import type { Properties } from "./connections/properties.ts";
import { createRegistry } from "./connections/registry.ts";
import { openRest, type RestProperties } from "./connections/rest.ts";
import type { Namespace } from "./namespace.ts";
import { createFetchTransport } from "./transport/fetch-transport.ts";

export * from "./exports.ts";

const { registerNamespace, connectByName } = createRegistry({
  connect: (properties) => openConnect(properties),
  rest: (properties) =>
    openRest(properties, async (uri, files) => {
      if (Object.keys(files).length === 0) return createFetchTransport(uri, (url, init) => fetch(url, init));
      throw new LanceError("Unsupported", "certificates for a connection cannot be chosen here");
    }),
});

export { registerNamespace };

/** Connects to a server over REST. */
export function connect(name: "rest", properties: RestProperties): Promise<Namespace>;
/** Connects to a server over the Connect protocol. */
export function connect(name: "connect", properties: ConnectProperties): Promise<Namespace>;
/** Connects by the name of a registered implementation. */
export function connect(name: string, properties?: Properties): Promise<Namespace>;
export function connect(name: string, properties: object = {}): Promise<Namespace> {
  return connectByName(name, properties as Properties);
}
