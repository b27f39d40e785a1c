import {
  closeSync,
  linkSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  unlinkSync,
  writeSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { setImmediate as turn } from "node:timers/promises";
import { type Disk, machineDisk } from "../../../src/backends/dir/format/local/disk.ts";
import type { Entry, Inode, Place } from "./log.ts";

interface Known {
  readonly isDirectory: boolean;
  /** The system's identity of the file; the system reuses its numbers. */
  readonly key: string;
  links: number;
  /** Number of bytes that are in the log. */
  size: number;
}

/** A disk that records all changes below a directory, including those of the engine. */
export interface Recorder {
  readonly disk: Disk;
  readonly entries: Entry[];
  /** Records the changes that the engine made since the last entry. */
  look(): void;
  /** Lets one of the next syncs fail, by its index from 0; the changes that it would cover are never synced. */
  failSync(index: number): void;
  /** Whether that sync has failed. */
  hasFailed(): boolean;
}

/**
 * Creates a recorder. Names change at once, so the log has the order of the calls; a sync takes a turn of the event
 * loop and enters the log when it ends. Nothing is really synced.
 *
 * The engine bypasses the recorder, which therefore looks at the directory before each entry: the engine's files appear
 * complete, in the order of their times, and the engine never syncs them.
 */
export function createRecorder(root: string): Recorder {
  const entries: Entry[] = [];
  const numbers = new Map<string, Inode>();
  const known = new Map<Inode, Known>();
  const names = new Map<Inode, Map<string, Inode>>();
  const open = new Map<number, Inode>();

  const keyOf = (path: string) => {
    const { ino, birthtimeNs } = lstatSync(path, { bigint: true });
    return `${ino}-${birthtimeNs}`;
  };
  const inodeOf = (path: string) => numbers.get(keyOf(path)) as Inode;
  const placeOf = (path: string): Place => ({ directory: inodeOf(dirname(path)), name: basename(path) });
  const namesIn = (directory: Inode) => names.get(directory) as Map<string, Inode>;

  function number(path: string, isDirectory: boolean): Inode {
    const inode = known.size;
    const key = keyOf(path);
    numbers.set(key, inode);
    known.set(inode, { isDirectory, key, links: 0, size: 0 });
    if (isDirectory) names.set(inode, new Map());
    return inode;
  }
  number(root, true);

  function put(at: Place, inode: Inode): void {
    take(at);
    namesIn(at.directory).set(at.name, inode);
    (known.get(inode) as Known).links++;
  }
  function take(at: Place): Inode | undefined {
    const inode = namesIn(at.directory).get(at.name);
    const file = known.get(inode as Inode);
    namesIn(at.directory).delete(at.name);
    if (file !== undefined && --file.links === 0) numbers.delete(file.key);
    return inode;
  }
  function named(path: string, inode: Inode): void {
    const at = placeOf(path);
    put(at, inode);
    entries.push({ kind: "name", at, inode, isDirectory: known.get(inode)?.isDirectory ?? false });
  }
  function unnamed(at: Place): void {
    const inode = take(at) as Inode;
    entries.push({ kind: "unname", at, inode });
  }
  function written(inode: Inode, bytes: Uint8Array): void {
    (known.get(inode) as Known).size += bytes.byteLength;
    entries.push({ kind: "write", inode, bytes: Uint8Array.from(bytes) });
  }

  /** Finds the entries of a directory that are not in the log: files whose bytes must be recorded, and names. */
  function findNew(directory: string, found: { path: string; time: bigint }[]): void {
    const before = namesIn(inodeOf(directory));
    const now = readdirSync(directory, { withFileTypes: true });
    for (const entry of now) {
      const path = join(directory, entry.name);
      const { mtimeNs, size } = lstatSync(path, { bigint: true });
      const inode = numbers.get(keyOf(path));
      const isKnown = inode !== undefined && before.get(entry.name) === inode;
      if (entry.isDirectory()) {
        if (!isKnown) named(path, number(path, true));
        findNew(path, found);
      } else if (!isKnown || known.get(inode)?.size !== Number(size)) found.push({ path, time: mtimeNs });
    }
  }
  function findGone(directory: string, inode: Inode): void {
    const now = new Set(readdirSync(directory));
    for (const [name, child] of [...namesIn(inode)]) {
      const isThere = now.has(name) && numbers.get(keyOf(join(directory, name))) === child;
      if (!isThere) unnamed({ directory: inode, name });
      else if (known.get(child)?.isDirectory) findGone(join(directory, name), child);
    }
  }
  function look(): void {
    const found: { path: string; time: bigint }[] = [];
    findNew(root, found);
    for (const { path } of found.sort((a, b) => Number(a.time - b.time))) {
      const inode = numbers.get(keyOf(path)) ?? number(path, false);
      const place = placeOf(path);
      const old = namesIn(place.directory).get(place.name);
      written(inode, readFileSync(path).subarray(known.get(inode)?.size));
      // A file that replaces another one is a rename, which is one step.
      if (old !== inode) named(path, inode);
    }
    findGone(root, 0);
  }
  /** Changes the disk right after the log has recorded the engine's earlier changes. */
  function after<A extends unknown[], R>(change: (...args: A) => R): (...args: A) => R {
    return (...args) => {
      look();
      return change(...args);
    };
  }
  const dropped = new Map<Inode, number>();
  let syncsLeft = Number.POSITIVE_INFINITY;
  async function sync(file: number): Promise<void> {
    look();
    const upTo = entries.length;
    const fails = syncsLeft-- === 0;
    await turn();
    const inode = open.get(file) as Inode;
    if (fails) {
      // The system drops the bytes that it could not write, and the next sync does not report them.
      dropped.set(inode, upTo);
      throw Object.assign(new Error("the disk fails"), { code: "EIO" });
    }
    entries.push({ kind: "sync", inode, from: dropped.get(inode) ?? 0, upTo });
  }
  const remove = (how: (path: string) => void) =>
    after(async (path: string) => {
      const place = placeOf(path);
      how(path);
      unnamed(place);
    });
  const disk: Disk = {
    ...machineDisk,
    open: after((path) => {
      const file = openSync(path, "r");
      open.set(file, inodeOf(path));
      return file;
    }),
    create: after((path) => {
      const file = openSync(path, "wx");
      const inode = number(path, false);
      open.set(file, inode);
      named(path, inode);
      return file;
    }),
    write: after((file, bytes) => {
      written(open.get(file) as Inode, bytes);
      return writeSync(file, bytes);
    }),
    syncBytes: sync,
    syncNames: sync,
    close: (file) => {
      closeSync(file);
      open.delete(file);
    },
    link: after((from, to) => {
      linkSync(from, to);
      named(to, inodeOf(to));
    }),
    rename: after(async (source, target) => {
      const [from, inode] = [placeOf(source), inodeOf(source)];
      renameSync(source, target);
      const to = placeOf(target);
      (known.get(inode) as Known).links++;
      take(from);
      put(to, inode);
      (known.get(inode) as Known).links--;
      entries.push({ kind: "rename", from, to, inode });
    }),
    mkdir: after((path) => {
      mkdirSync(path);
      named(path, number(path, true));
    }),
    unlink: remove(unlinkSync),
    rmdir: remove(rmdirSync),
  };
  return {
    disk,
    entries,
    look,
    failSync(index) {
      syncsLeft = index;
    },
    hasFailed: () => syncsLeft < 0,
  };
}
