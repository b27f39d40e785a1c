/** The number of a file or a directory; the root is 0. */
export type Inode = number;

/** A name in a directory. */
export interface Place {
  readonly directory: Inode;
  readonly name: string;
}

/** Events of a disk, in order. */
export type Entry =
  /** A file or a directory got a name; new directories are empty. */
  | { readonly kind: "name"; readonly at: Place; readonly inode: Inode; readonly isDirectory: boolean }
  | { readonly kind: "unname"; readonly at: Place; readonly inode: Inode }
  | { readonly kind: "rename"; readonly from: Place; readonly to: Place; readonly inode: Inode }
  /** Bytes were appended to a file. */
  | { readonly kind: "write"; readonly inode: Inode; readonly bytes: Uint8Array }
  /** A sync ended; it covers the entries from `from` to before `upTo`. */
  | { readonly kind: "sync"; readonly inode: Inode; readonly from: number; readonly upTo: number }
  /** A step began, was acknowledged or was refused. */
  | { readonly kind: "mark"; readonly what: "begun" | "done"; readonly step: number };

/** A log, and the number of its entries that were on the disk before the recording began. */
export interface Log {
  readonly entries: readonly Entry[];
  readonly durable: number;
}
