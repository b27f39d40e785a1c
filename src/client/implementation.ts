import type { LanceNamespace } from "../namespace/lance-namespace.ts";
import type { Properties } from "./properties.ts";

/** How `@lancedb/lancedb` reaches the same tables: the arguments of its `connectNamespace`. */
export interface LanceDbAccess {
  readonly implementation: string;
  readonly properties: Readonly<Record<string, string>>;
}

/** What a {@link NamespaceFactory} makes. */
export interface NamespaceImplementation {
  /** The name in messages. */
  readonly name: string;
  /** Names what is connected to, for people. */
  readonly description?: string | undefined;
  /** The operations; one that is missing fails with Unsupported. */
  readonly operations: Partial<LanceNamespace>;
  /** Headers that every call gets. Default: none. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Default: `openTable` is not supported. */
  readonly lancedb?: LanceDbAccess | undefined;
  close?(): Promise<void>;
}

/** Makes a connection from its properties. Failures are LanceErrors. */
export type NamespaceFactory = (
  properties: Properties,
) => NamespaceImplementation | Promise<NamespaceImplementation>;
