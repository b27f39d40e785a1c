import type { LanceNamespace } from "../../namespace/lance-namespace.ts";
import type { Properties } from "./properties.ts";

/** How `@lancedb/lancedb` reaches the tables of the connection: the arguments of its `connectNamespace`. */
export interface LanceDbAccess {
  readonly implementation: string;
  readonly properties: Readonly<Record<string, string>>;
}

/** Result of a {@link NamespaceFactory}. */
export interface NamespaceImplementation {
  /** Name in messages. */
  readonly name: string;
  /** Description of the connection's target, for people. */
  readonly description?: string | undefined;
  /** The operations; a missing operation fails with Unsupported. */
  readonly operations: Partial<LanceNamespace>;
  /** Headers for every call. Default: none. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Default: `openTable` is not supported. */
  readonly lancedb?: LanceDbAccess | undefined;
  close?(): Promise<void>;
}

/** Creates a connection from its properties. Failures are LanceErrors. */
export type NamespaceFactory = (
  properties: Properties,
) => NamespaceImplementation | Promise<NamespaceImplementation>;
