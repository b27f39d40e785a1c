import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Random } from "../../support/random.ts";
import type { Entry, Inode, Log, Place } from "./log.ts";

/** A moment of a power cut, and the share of unsynced changes that reached the disk. */
export interface Cut {
  /** Number of log entries before the cut. */
  readonly at: number;
  /** The share of unsynced changes that are on the disk nevertheless, from 0 to 1. */
  readonly kept: number;
}

/** Lays out below `root` the content of a disk after a power cut. */
export function replay(log: Log, cut: Cut, random: Random, root: string): void {
  const happened = log.entries.slice(0, cut.at);
  const synced = syncsOf(happened);
  const isKept = () => cut.kept === 1 || (cut.kept > 0 && random.below(1000) < cut.kept * 1000);
  const names = new Map<Inode, Map<string, Inode>>([[0, new Map()]]);
  const bytes = new Map<Inode, Uint8Array[]>();
  const torn = new Set<Inode>();
  for (const [i, entry] of happened.entries()) {
    const isSynced = (inode: Inode) =>
      i < log.durable || (synced.get(inode) ?? []).some(([from, upTo]) => from <= i && i < upTo);
    const isThere = placesOf(entry).some(({ directory }) => isSynced(directory)) || isKept();
    if (entry.kind === "write") keepBytes(entry.inode, entry.bytes, isSynced(entry.inode));
    if (entry.kind === "name" && entry.isDirectory && !names.has(entry.inode))
      names.set(entry.inode, new Map());
    if (isThere) apply(entry, names);
  }

  /** Writes the bytes of a file; missing bytes make it shorter, or are zeros. */
  function keepBytes(inode: Inode, chunk: Uint8Array, isSynced: boolean): void {
    const chunks = bytes.get(inode) ?? [];
    bytes.set(inode, chunks);
    if (isSynced || (!torn.has(inode) && isKept())) {
      chunks.push(chunk);
      return;
    }
    const loss = torn.has(inode) ? "all" : random.pick(["all", "end", "content"] as const);
    if (loss === "end") chunks.push(chunk.subarray(0, random.below(chunk.byteLength + 1)));
    if (loss === "content") chunks.push(new Uint8Array(chunk.byteLength));
    torn.add(inode);
  }
  function write(directory: Inode, path: string): void {
    mkdirSync(path, { recursive: true });
    for (const [name, inode] of names.get(directory) ?? []) {
      const below = join(path, name);
      if (names.has(inode)) write(inode, below);
      else writeFileSync(below, Buffer.concat(bytes.get(inode) ?? []));
    }
  }
  rmSync(root, { recursive: true, force: true });
  write(0, root);
}

/** Returns the ranges of entries that the syncs of each file and each directory cover. */
function syncsOf(entries: readonly Entry[]): Map<Inode, [from: number, upTo: number][]> {
  const synced = new Map<Inode, [number, number][]>();
  for (const entry of entries) {
    if (entry.kind !== "sync") continue;
    const ranges = synced.get(entry.inode) ?? [];
    ranges.push([entry.from, entry.upTo]);
    synced.set(entry.inode, ranges);
  }
  return synced;
}

/**
 * Returns the names that an entry changes. A rename is one change of a journal, so a sync of either directory keeps it.
 */
function placesOf(entry: Entry): readonly Place[] {
  if (entry.kind === "name" || entry.kind === "unname") return [entry.at];
  return entry.kind === "rename" ? [entry.from, entry.to] : [];
}

function apply(entry: Entry, names: Map<Inode, Map<string, Inode>>): void {
  const namesAt = ({ directory }: Place) => names.get(directory) as Map<string, Inode>;
  const clear = (at: Place, inode: Inode) => {
    if (namesAt(at).get(at.name) === inode) namesAt(at).delete(at.name);
  };
  if (entry.kind === "name") namesAt(entry.at).set(entry.at.name, entry.inode);
  if (entry.kind === "unname") clear(entry.at, entry.inode);
  if (entry.kind === "rename") {
    clear(entry.from, entry.inode);
    namesAt(entry.to).set(entry.to.name, entry.inode);
  }
}
