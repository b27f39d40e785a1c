/** Name of the mark of a declared table. */
export const RESERVED_MARKER = ".lance-reserved";

/** Name of the mark that hides a directory of the root from implementations that list directories. */
export const DEREGISTERED_MARKER = ".lance-deregistered";

/** Content of a mark that belongs to no claim and no drop. */
export const PLAIN_MARK = Buffer.from("reserved");

/** Whether a name in a directory is that of a mark. */
export const isMark = (name: string): boolean => name === RESERVED_MARKER || name === DEREGISTERED_MARKER;

const CLAIMED = "claimed ";

/** Returns the content of a claim's mark, which shows whose claim it is. */
export const claimMark = (claim: string): Buffer => Buffer.from(CLAIMED + claim);

/** Whether a mark is that of a claim. */
export const isClaim = (mark: Uint8Array): boolean => Buffer.from(mark).toString().startsWith(CLAIMED);

const DEPARTING = "departing ";

/** Adds a change to a mark: the change removes the directory after its commit, and others may be about to, too. */
export function withDeparture(mark: Uint8Array | undefined, change: string): Buffer {
  const before = mark === undefined ? "" : Buffer.from(mark).toString();
  const own = DEPARTING + change;
  return Buffer.from(before.startsWith(DEPARTING) ? `${before}\n${own}` : own);
}

/** Whether a change has been added to a mark. */
export function hasDeparture(mark: Uint8Array | undefined, change: string): boolean {
  return (
    mark !== undefined &&
    Buffer.from(mark)
      .toString()
      .split("\n")
      .includes(DEPARTING + change)
  );
}
