import { createHash, randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { LanceError } from "../../../../namespace/errors.ts";
import type { DatasetRef } from "../dataset.ts";
import { damagedFile, parseJsonFile } from "../files/damaged-file.ts";
import { listNames } from "../storage.ts";
import type { TransactionRecord } from "./transaction-records.ts";

/**
 * Changes that clients made to a transaction afterwards. The transaction itself is immutable, so the changes have a
 * file of their own, as in the directory catalog of Lance (contract 7, row 54).
 */
export interface TransactionAlteration {
  /** In the spelling of the last writer. */
  readonly status: string | undefined;
  /** Added properties, which override the transaction's own. */
  readonly properties: ReadonlyMap<string, string>;
  /** Removed properties of the transaction itself. */
  readonly removed: ReadonlySet<string>;
}

/*
 * Other implementations know the public file `<uuid>.json`; they put it, and the last writer wins. Processes of this
 * project write revisions instead: they put `<uuid>/<number>.json` only if it is absent, so each revision follows the
 * one that its writer has read. The newest revision counts, unless the public file contains something that was never
 * published from here. Revisions are not deleted: the number after the revision that a slow writer has read must not
 * become free.
 */

/** Maximum number of revisions of a transaction. */
export const MAX_REVISIONS = 1_000;

/** Maximum number of attempts at a change while other writers are faster. */
const MAX_ATTEMPTS = 20;

/** Maximum number of times that the public file is put while others make newer revisions. */
const MAX_PUBLICATIONS = 5;

/** State on which the next revision is based. */
interface Current {
  readonly alteration: TransactionAlteration;
  /** Number of the newest revision; 0 if there is none. */
  readonly revision: number;
  /** {@link digestOf} everything that revisions have put into the public file. */
  readonly published: readonly string[];
}

/** Reads the changes of a transaction; they are empty if it has no file. */
export async function readAlteration(
  dataset: DatasetRef,
  transaction: TransactionRecord,
): Promise<TransactionAlteration> {
  return (await readCurrent(dataset, transaction)).alteration;
}

/**
 * Alters the recorded changes of a transaction. Each of several concurrent processes sees the writes of the earlier
 * ones.
 *
 * @param change called again if another process was faster
 * @throws LanceError ConcurrentModification if others were faster in every attempt, InvalidTableState after {@link
 *   MAX_REVISIONS}, and the errors of `change`
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
  throw new LanceError("ConcurrentModification", "other writers kept changing the transaction; try again");
}

/** Puts a revision into the public file, followed by any newer revision that was made meanwhile. */
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
  // A revision that is made after this read is newer than the file.
  const key = alterationKey(dataset, transaction);
  const bytes = await dataset.store.get(key);
  const revision = await newestRevision(dataset, transaction);
  const known = revision === 0 ? undefined : await readRevision(dataset, transaction, revision);
  const { published = [] } = known ?? {};
  const digest = bytes && digestOf(Buffer.from(bytes).toString("utf8"));
  if (known !== undefined && (digest === undefined || published.includes(digest)))
    return { alteration: decode(known.alteration), revision, published };
  if (bytes === undefined || digest === undefined) return { alteration: decode({}), revision, published };
  return { alteration: decode(parseJsonFile(key, bytes)), revision, published: [...published, digest] };
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
  if (bytes === undefined) throw damagedFile(key, "is missing");
  const { alteration, published } = parseJsonFile(key, bytes) as Partial<RevisionFile>;
  if (alteration === undefined || !Array.isArray(published)) throw damagedFile(key, "holds no revision");
  return { alteration, published, writer: "" };
}

/** A revision in its stored form. */
interface RevisionFile {
  readonly alteration: AlterationFile;
  /** See {@link Current.published}. */
  readonly published: readonly string[];
  /** Makes the bytes of each writer unique. */
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

/** Returns the properties of a transaction with the changes applied. */
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

/** Returns the directory of a transaction's revisions. */
function revisionsOf({ root }: DatasetRef, { uuid }: TransactionRecord): string {
  // Any writer may have put the uuid into a file, and here it becomes part of a path.
  if (!/^[\w-]+$/.test(uuid)) throw damagedFile(uuid, "is not the id of a transaction");
  return `${root}/_alter_transactions/${uuid}`;
}

interface AlterationFile {
  readonly status?: unknown;
  readonly properties?: Readonly<Record<string, string>> | null;
  readonly removed_properties?: readonly string[] | null;
}
