import type { DatasetRef } from "./layout.ts";
import type { TransactionRecord } from "./transactions.ts";

/**
 * What clients changed about a transaction afterwards. The transaction itself cannot change, so the changes are
 * in a file of their own, the one that the directory catalog of Lance keeps (contract 7, row 54).
 */
export interface TransactionAlteration {
  /** As the last writer spelled it. */
  readonly status: string | undefined;
  /** Properties that were set; they come before the transaction's own. */
  readonly properties: ReadonlyMap<string, string>;
  /** Properties of the transaction itself that were removed. */
  readonly removed: ReadonlySet<string>;
}

/** Reads the changes of a transaction; none if there is no file. */
export async function readAlteration(
  dataset: DatasetRef,
  transaction: TransactionRecord,
): Promise<TransactionAlteration> {
  const key = alterationKey(dataset, transaction);
  const bytes = await dataset.store.get(key);
  if (!bytes) return { status: undefined, properties: new Map(), removed: new Set() };
  const { status, properties, removed_properties: removed } = parse(key, bytes);
  return {
    status: typeof status === "string" ? status : undefined,
    properties: new Map(Object.entries(properties ?? {})),
    removed: new Set(removed ?? []),
  };
}

/** Writes all changes of a transaction; the last of several writers wins. */
export async function writeAlteration(
  dataset: DatasetRef,
  transaction: TransactionRecord,
  { status, properties, removed }: TransactionAlteration,
): Promise<void> {
  const content = {
    status: status ?? null,
    properties: Object.fromEntries(properties),
    removed_properties: [...removed],
  };
  await dataset.store.put(alterationKey(dataset, transaction), Buffer.from(JSON.stringify(content)));
}

/** The properties of a transaction with the changes applied. */
export function effectiveProperties(
  { properties: own }: TransactionRecord,
  { properties, removed }: TransactionAlteration,
): Map<string, string> {
  const kept = Object.entries(own).filter(([name]) => !removed.has(name));
  return new Map([...kept, ...properties]);
}

function alterationKey({ root }: DatasetRef, { uuid }: TransactionRecord): string {
  // The uuid is what some writer put into a file, and here becomes part of a path.
  if (!/^[\w-]+$/.test(uuid)) throw new Error(`the transaction's id ${JSON.stringify(uuid)} is no uuid`);
  return `${root}/_alter_transactions/${uuid}.json`;
}

interface AlterationFile {
  readonly status?: unknown;
  readonly properties?: Readonly<Record<string, string>> | null;
  readonly removed_properties?: readonly string[] | null;
}

function parse(key: string, bytes: Uint8Array): AlterationFile {
  try {
    const content: unknown = JSON.parse(Buffer.from(bytes).toString("utf8"));
    if (typeof content === "object" && content !== null) return content;
  } catch (error) {
    throw new Error(`${key} is no JSON`, { cause: error });
  }
  throw new Error(`${key} is no JSON object`);
}
