/** Name of the mark of a declared table. */
export const RESERVED_MARKER = ".lance-reserved";

/** Name of the mark that hides a directory of the root from implementations that list directories. */
export const DEREGISTERED_MARKER = ".lance-deregistered";

/** Content of a mark that belongs to no claim and no drop. */
export const PLAIN_MARK = Buffer.from("reserved");

/** Names of all marks. */
export const MARKS: readonly string[] = [RESERVED_MARKER, DEREGISTERED_MARKER];

/** Whether a name in a directory is that of a mark. */
export const isMark = (name: string): boolean => MARKS.includes(name);

const CLAIMED = "claimed ";

/** Returns the content of a claim's mark, which shows whose claim it is. */
export const claimMark = (claim: string): Buffer => Buffer.from(CLAIMED + claim);

/** Whether a mark is that of a claim. */
export const isClaim = (mark: Uint8Array): boolean => Buffer.from(mark).toString().startsWith(CLAIMED);

const DEPARTING = "departing ";

/** Returns the changes in a mark that are about to take the directory from its table. */
export function departuresIn(mark: Uint8Array | undefined): string[] {
  const lines = mark === undefined ? [] : Buffer.from(mark).toString().split("\n");
  return lines.filter((line) => line.startsWith(DEPARTING)).map((line) => line.slice(DEPARTING.length));
}

/** Returns the content of the mark of changes that are about to take the directory; there may be none. */
export function departureMark(changes: readonly string[]): Buffer {
  return changes.length === 0 ? PLAIN_MARK : Buffer.from(changes.map((id) => DEPARTING + id).join("\n"));
}
