import type { TableVersion } from "../gen/lance/namespace/v1/version_pb.ts";
import { type ErrorName, LanceError } from "../namespace/errors.ts";
import type { Identifier } from "../namespace/identifier.ts";
import type { Namespace } from "./namespace.ts";

/** The known facts about how a version came about. */
export interface VersionChange {
  readonly version: TableVersion;
  /** Name of the operation that made it, such as `Append`. Default: unknown. */
  readonly operation?: string | undefined;
  /** Rows of the version. Default: unknown. */
  readonly rows?: bigint | undefined;
  /** Rows of the version before. Default: unknown. */
  readonly rowsBefore?: bigint | undefined;
}

/** The table and the branch of versions. */
export interface VersionPlace {
  readonly id: Identifier;
  readonly branch: string | undefined;
}

/** Number of versions about which the server is asked at a time. */
const AT_A_TIME = 8;

/** Answers of servers that cannot tell, or do not tell this caller. */
const UNTOLD: ReadonlySet<ErrorName> = new Set<ErrorName>([
  "Unsupported",
  "TransactionNotFound",
  "TableVersionNotFound",
  "PermissionDenied",
]);

async function unlessUntold<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work;
  } catch (error) {
    if (error instanceof LanceError && UNTOLD.has(error.kind)) return undefined;
    throw error;
  }
}

/**
 * Yields versions, the newest first, with what they changed. It asks about some at a time, so that a long history is neither in
 * memory nor slow.
 *
 * @param versions the newest first, without gaps except for versions that are pruned
 */
export async function* changesOf(
  namespace: Namespace,
  { id, branch }: VersionPlace,
  versions: AsyncIterable<TableVersion>,
  signal: AbortSignal,
): AsyncIterable<VersionChange> {
  const counts = new Map<bigint, Promise<bigint | undefined>>();
  function rowsOf(version: bigint): Promise<bigint | undefined> {
    const asked =
      counts.get(version) ??
      unlessUntold(namespace.countTableRows({ id, branch, version }, { signal }).then(({ count }) => count));
    counts.set(version, asked);
    return asked;
  }
  async function operationOf(version: bigint): Promise<string | undefined> {
    // A transaction is found by its number on the main branch alone.
    if (branch !== undefined && branch !== "main") return undefined;
    const found = namespace.describeTransaction({ id: [...id, String(version)] }, { signal });
    return (await unlessUntold(found))?.properties["operation"];
  }
  async function changeOf(version: TableVersion): Promise<VersionChange> {
    const number = version.version;
    const [operation, rows, rowsBefore] = await Promise.all([
      operationOf(number),
      rowsOf(number),
      number === 1n ? 0n : rowsOf(number - 1n),
    ]);
    counts.delete(number);
    return { version, operation, rows, rowsBefore };
  }
  for await (const some of inGroups(versions, AT_A_TIME)) yield* await Promise.all(some.map(changeOf));
}

async function* inGroups<T>(items: AsyncIterable<T>, size: number): AsyncIterable<readonly T[]> {
  let held: T[] = [];
  for await (const item of items) {
    held.push(item);
    if (held.length < size) continue;
    yield held;
    held = [];
  }
  if (held.length > 0) yield held;
}

/** Rows that an operation added and removed. */
export interface RowChange {
  readonly added: bigint;
  readonly removed: bigint;
}

/** How the row counts before and after an operation tell its additions and removals. */
const ROW_CHANGES: Readonly<Record<string, (before: bigint, after: bigint) => RowChange>> = {
  Append: (before, after) => ({ added: after - before, removed: 0n }),
  Delete: (before, after) => ({ added: 0n, removed: before - after }),
  Overwrite: (before, after) => ({ added: after, removed: before }),
};

/** Returns the rows that a version added and removed; undefined if that is unknown, as for an update that may do both. */
export function rowChangeOf({ operation = "", rows, rowsBefore }: VersionChange): RowChange | undefined {
  if (rows === undefined || rowsBefore === undefined || !Object.hasOwn(ROW_CHANGES, operation))
    return undefined;
  return ROW_CHANGES[operation]?.(rowsBefore, rows);
}

/** Returns the change of the rows for people: `+300`, `-20`, or `net +1` if only the sum is known. */
export function rowChangeText(change: VersionChange): string {
  const known = rowChangeOf(change);
  if (known !== undefined)
    return [known.added > 0n && `+${known.added}`, known.removed > 0n && `-${known.removed}`]
      .filter(Boolean)
      .join(" ");
  const { rows, rowsBefore } = change;
  if (rows === undefined || rowsBefore === undefined || rows === rowsBefore) return "";
  return `net ${rows > rowsBefore ? "+" : ""}${rows - rowsBefore}`;
}
