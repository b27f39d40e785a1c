import {
  closeSync,
  fdatasync,
  fsync,
  linkSync,
  mkdirSync,
  openSync,
  rename,
  rm,
  rmdir,
  unlink,
  write,
  writeSync,
} from "node:fs";
import { promisify } from "node:util";

/**
 * The calls of the operating system that change a disk, and those that open files. Everything that this project
 * writes to a disk goes through them, so that a test can count, refuse, record and lose them.
 *
 * What takes microseconds is done at once, because a commit waits for these calls one after the other; what waits for
 * the disk is handed to other threads.
 */
export interface Disk {
  /** Opens a file, or a directory, for reading. */
  open(path: string): number;
  /** Opens a file that must not be there yet. */
  create(path: string): number;
  /** Writes at the end of what was written before; returns how many bytes it took. */
  write(file: number, bytes: Uint8Array): number | Promise<number>;
  /** Waits until the bytes of a file are on the disk. */
  syncBytes(file: number): Promise<void>;
  /** Waits until the names in a directory are on the disk. */
  syncNames(directory: number): Promise<void>;
  close(file: number): void;
  /** Gives a file another name, which must not be taken. */
  link(from: string, to: string): void;
  /** Gives a file or a directory another name; a file takes the place of one that has it. */
  rename(from: string, to: string): Promise<void>;
  unlink(path: string): Promise<void>;
  mkdir(path: string): void;
  rmdir(path: string): Promise<void>;
  /** Removes a file, or a directory with all that is in it; nothing there is fine. */
  removeTree(path: string): Promise<void>;
}

/** Bytes that are written at once; more are handed to another thread. */
const SMALL = 256 * 1024;

const writeAsync = promisify(write);

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
  unlink: promisify(unlink),
  mkdir: (path) => mkdirSync(path),
  rmdir: promisify<string, void>(rmdir),
  removeTree: (path) => promisify(rm)(path, { recursive: true, force: true }),
};
