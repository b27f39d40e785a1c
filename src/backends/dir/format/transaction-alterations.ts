import { createHash, randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { LanceError } from "../../../namespace/errors.ts";
import type { DatasetRef } from "./dataset.ts";
import { listNames } from "./storage.ts";
import type { TransactionRecord } from "./transaction-records.ts";

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

/*
 * The file that other implementations know is `<uuid>.json`; they put it, and the last one wins. Processes that write
 * here take turns instead: `<uuid>/<number>.json` is put only if it is absent, so each revision follows the one that
 * its writer has read. The revision counts, unless the file that others know has something that was never written
 * here. Revisions are not deleted: a slow writer must not find the number free that it has read as the next one.
 */

/** The most revisions of a transaction. */
export const MAX_REVISIONS = 1_000;

/** How often a change is decided again because others were faster. */
const MAX_ATTEMPTS = 20;

/** How often the file that others know is put again because somebody made a newer revision meanwhile. */
const MAX_PUBLICATIONS = 5;

/** What is to be known before the next revision can be made. */
interface Current {
  readonly alteration: TransactionAlteration;
  /** The number of the newest revision; 0 if there is none. */
  readonly revision: number;
  /** {@link digestOf} everything that the file for others had by way of revisions. */
  readonly published: readonly string[];
}

/** Reads the changes of a transaction; none if there is no file. */
export async function readAlteration(
  dataset: DatasetRef,
  transaction: TransactionRecord,
): Promise<TransactionAlteration> {
  return (await readCurrent(dataset, transaction)).alteration;
}

/**
 * Changes what is noted of a transaction; of several processes each sees what the ones before it wrote.
 *
 * @param change is called again when another process was faster
 * @throws LanceError ConcurrentModification when others kept being faster, InvalidTableState after
 *   {@link MAX_REVISIONS}, and what `change` throws
 */
export async function alter(
  dataset: DatasetRef,
  transaction: TransactionRecord,
  change: (before: TransactionAlteration) => TransactionAlteration,
): Promise<TransactionAlteration> {
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    if (attempt > 0) await sleep(Math.random() * 10 * attempt);
    const { alteration, revision, published } = await readCurrent(dataset, transaction);
    if (revision >= MAX_REVISIONS) {
      throw new LanceError(
        "InvalidTableState",
        `the transaction was altered ${MAX_REVISIONS} times, which is the most`,
      );
    }
    const after = change(alteration);
    const text = encode(after);
    const content: RevisionFile = {
      alteration: JSON.parse(text),
      published: [...new Set([...published, digestOf(text)])],
      writer: randomUUID(),
    };
    const key = revisionKey(dataset, transaction, revision + 1);
    if (!(await dataset.store.putIfAbsent(key, Buffer.from(JSON.stringify(content))))) continue;
    await publish(dataset, transaction, revision + 1, text);
    return after;
  }
  throw new LanceError("ConcurrentModification", "others kept altering the transaction; try again");
}

/** Puts a revision where others look; a newer one that was made meanwhile is put after it. */
async function publish(
  dataset: DatasetRef,
  transaction: TransactionRecord,
  revision: number,
  text: string,
): Promise<void> {
  let [number, content] = [revision, text];
  for (let tries = 0; tries < MAX_PUBLICATIONS; tries++) {
    await dataset.store.put(alterationKey(dataset, transaction), Buffer.from(content));
    const newest = await newestRevision(dataset, transaction);
    if (newest <= number) return;
    const { alteration } = await readRevision(dataset, transaction, newest);
    [number, content] = [newest, encode(decode(alteration))];
  }
}

async function readCurrent(dataset: DatasetRef, transaction: TransactionRecord): Promise<Current> {
  // A revision that is made after the file was read is newer than that.
  const key = alterationKey(dataset, transaction);
  const bytes = await dataset.store.get(key);
  const revision = await newestRevision(dataset, transaction);
  const known = revision === 0 ? undefined : await readRevision(dataset, transaction, revision);
  const { published = [] } = known ?? {};
  const digest = bytes && digestOf(Buffer.from(bytes).toString("utf8"));
  if (known !== undefined && (digest === undefined || published.includes(digest)))
    return { alteration: decode(known.alteration), revision, published };
  if (bytes === undefined || digest === undefined) return { alteration: decode({}), revision, published };
  return { alteration: decode(parse(key, bytes)), revision, published: [...published, digest] };
}

async function newestRevision(dataset: DatasetRef, transaction: TransactionRecord): Promise<number> {
  let newest = 0;
  for (const name of await listNames(dataset.store, revisionsOf(dataset, transaction))) {
    const number = /^(\d{1,9})\.json$/.exec(name)?.[1];
    if (number !== undefined) newest = Math.max(newest, Number(number));
  }
  return newest;
}

async function readRevision(
  dataset: DatasetRef,
  transaction: TransactionRecord,
  revision: number,
): Promise<RevisionFile> {
  const key = revisionKey(dataset, transaction, revision);
  const bytes = await dataset.store.get(key);
  if (bytes === undefined) throw new Error(`${key} is missing`);
  const { alteration, published } = parse(key, bytes) as Partial<RevisionFile>;
  if (alteration === undefined || !Array.isArray(published)) throw new Error(`${key} holds no revision`);
  return { alteration, published, writer: "" };
}

/** A revision as it is stored. */
interface RevisionFile {
  readonly alteration: AlterationFile;
  /** See {@link Current.published}. */
  readonly published: readonly string[];
  /** Makes the bytes of each writer its own. */
  readonly writer: string;
}

function digestOf(text: string): string {
  return createHash("sha256").update(text).digest("base64url").slice(0, 22);
}

function decode({ status, properties, removed_properties: removed }: AlterationFile): TransactionAlteration {
  return {
    status: typeof status === "string" ? status : undefined,
    properties: new Map(Object.entries(properties ?? {})),
    removed: new Set(removed ?? []),
  };
}

function encode({ status, properties, removed }: TransactionAlteration): string {
  return JSON.stringify({
    status: status ?? null,
    properties: Object.fromEntries(properties),
    removed_properties: [...removed],
  });
}

/** The properties of a transaction with the changes applied. */
export function effectiveProperties(
  { properties: own }: TransactionRecord,
  { properties, removed }: TransactionAlteration,
): Map<string, string> {
  const kept = Object.entries(own).filter(([name]) => !removed.has(name));
  return new Map([...kept, ...properties]);
}

function alterationKey(dataset: DatasetRef, transaction: TransactionRecord): string {
  return `${revisionsOf(dataset, transaction)}.json`;
}

function revisionKey(dataset: DatasetRef, transaction: TransactionRecord, revision: number): string {
  return `${revisionsOf(dataset, transaction)}/${revision}.json`;
}

/** The directory of a transaction's revisions. */
function revisionsOf({ root }: DatasetRef, { uuid }: TransactionRecord): string {
  // The uuid is what some writer put into a file, and here becomes part of a path.
  if (!/^[\w-]+$/.test(uuid)) throw new Error(`the transaction's id ${JSON.stringify(uuid)} is no uuid`);
  return `${root}/_alter_transactions/${uuid}`;
}

interface AlterationFile {
  readonly status?: unknown;
  readonly properties?: Readonly<Record<string, string>> | null;
  readonly removed_properties?: readonly string[] | null;
}

function parse(key: string, bytes: Uint8Array): object {
  try {
    const content: unknown = JSON.parse(Buffer.from(bytes).toString("utf8"));
    if (typeof content === "object" && content !== null) return content;
  } catch (error) {
    throw new Error(`${key} is no JSON`, { cause: error });
  }
  throw new Error(`${key} is no JSON object`);
}
