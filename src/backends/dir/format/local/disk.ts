import {
  closeSync,
  fdatasync,
  fsync,
  linkSync,
  mkdirSync,
  openSync,
  rename,
  rmdir,
  unlink,
  utimes,
  write,
  writeSync,
} from "node:fs";
import { promisify } from "node:util";

/**
 * The system calls that change a disk, and those that open files. All writes of this project to a disk go through them,
 * so that a test can count, refuse, record and lose them.
 *
 * Calls that take microseconds are synchronous, because a commit makes them one after the other; calls that wait for
 * the disk run on other threads.
 */
export interface Disk {
  /** Opens a file, or a directory, for reading. */
  open(path: string): number;
  /** Opens a new file; fails if it exists. */
  create(path: string): number;
  /** Appends to what was written before; returns how many bytes it took. */
  write(file: number, bytes: Uint8Array): number | Promise<number>;
  /** Waits until the bytes of a file are on the disk. */
  syncBytes(file: number): Promise<void>;
  /** Waits until the names in a directory are on the disk. */
  syncNames(directory: number): Promise<void>;
  close(file: number): void;
  /** Gives a file a further name, which must be free. */
  link(from: string, to: string): void;
  /** Renames a file or a directory; a file replaces an existing one of that name. */
  rename(from: string, to: string): Promise<void>;
  /** Gives a file the time of now, as if it had been written. */
  touch(path: string): Promise<void>;
  unlink(path: string): Promise<void>;
  mkdir(path: string): void;
  rmdir(path: string): Promise<void>;
}

/** Maximum number of bytes that are written synchronously; larger writes run on another thread. */
const SMALL = 256 * 1024;

const writeAsync = promisify(write);
const setTimes = promisify(utimes);

/** The disks of this machine. */
export const machineDisk: Disk = {
  open: (path) => openSync(path, "r"),
  create: (path) => openSync(path, "wx"),
  write: (file, bytes) =>
    bytes.byteLength <= SMALL
      ? writeSync(file, bytes)
      : writeAsync(file, bytes).then(({ bytesWritten }) => bytesWritten),
  syncBytes: promisify(fdatasync),
  syncNames: promisify(fsync),
  close: closeSync,
  link: linkSync,
  rename: promisify(rename),
  touch: (path) => setTimes(path, new Date(), new Date()),
  unlink: promisify(unlink),
  mkdir: (path) => mkdirSync(path),
  rmdir: promisify<string, void>(rmdir),
};
