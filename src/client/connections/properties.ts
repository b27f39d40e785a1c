import { LanceError } from "../../namespace/errors.ts";
import type { LanceNamespace } from "../../namespace/lance-namespace.ts";

/**
 * Properties of a connection, with names and values as in the Lance Namespace libraries of other languages. Values
 * are texts; numbers and booleans are converted.
 */
export type Properties = Readonly<Record<string, string | number | boolean | undefined>>;

/** Reads the properties of an implementation, and finally reports the unknown ones. */
export interface PropertyReader {
  /** Returns a required value. */
  required(name: string): string;
  text(name: string): string | undefined;
  /** Returns a switch: `true` or `false`. */
  flag(name: string): boolean | undefined;
  /** Returns a number of at least 0. */
  number(name: string): number | undefined;
  /** Returns the properties whose names begin with any of the prefixes, without the prefix. */
  under(...prefixes: string[]): Record<string, string>;
  /** Accepts properties of other libraries that have no effect here. */
  ignore(...names: string[]): void;
  /** @throws LanceError InvalidInput, if there are properties that were not read. */
  end(): void;
}

/** Creates a reader. Its functions throw LanceError InvalidInput, naming the property. */
export function readProperties(implementation: string, properties: Properties): PropertyReader {
  const texts = Object.entries(properties).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, String(value)] as const],
  );
  const values: ReadonlyMap<string, string> = new Map(texts);
  const unread = new Set(values.keys());

  function text(name: string): string | undefined {
    unread.delete(name);
    return values.get(name);
  }

  function wrong(name: string, must: string): LanceError {
    const given = JSON.stringify(values.get(name));
    return new LanceError("InvalidInput", `property "${name}" of "${implementation}" ${must}, not ${given}`);
  }

  return {
    text,
    required(name) {
      const value = text(name);
      if (value) return value;
      throw new LanceError("InvalidInput", `"${implementation}" needs the property "${name}"`);
    },
    flag(name) {
      const value = text(name)?.toLowerCase();
      if (value === undefined) return undefined;
      if (value !== "true" && value !== "false") throw wrong(name, "must be true or false");
      return value === "true";
    },
    number(name) {
      const value = text(name);
      if (value === undefined) return undefined;
      if (!/^\d+$/.test(value)) throw wrong(name, "must be a number");
      return Number(value);
    },
    under(...prefixes) {
      const found: Record<string, string> = {};
      for (const [name, value] of values) {
        const prefix = prefixes.find((candidate) => name.startsWith(candidate));
        if (prefix === undefined || name.length === prefix.length) continue;
        unread.delete(name);
        found[name.slice(prefix.length)] = value;
      }
      return found;
    },
    ignore(...names) {
      for (const name of names) unread.delete(name);
    },
    end() {
      if (unread.size === 0) return;
      const names = [...unread].map((name) => JSON.stringify(name)).join(", ");
      throw new LanceError("InvalidInput", `"${implementation}" has no property ${names}`);
    },
  };
}

/** Files of a TLS connection, by their contents. */
export type TlsFiles = Readonly<Partial<Record<"cert" | "key" | "ca", string>>>;

/** Reads the names of the files of a TLS connection. */
export function readTlsFiles(reader: PropertyReader): TlsFiles {
  const [cert, key] = [reader.text("tls.cert_file"), reader.text("tls.key_file")];
  const ca = reader.text("tls.ssl_ca_cert");
  if ((cert === undefined) !== (key === undefined)) {
    throw new LanceError("InvalidInput", '"tls.cert_file" and "tls.key_file" go together');
  }
  return { ...(cert && { cert }), ...(key && { key }), ...(ca && { ca }) };
}

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
