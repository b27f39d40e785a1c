import type { Call } from "../../../../namespace/call/call.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import { joinIdentifier } from "../../../../namespace/identifier.ts";
import type { ChangeContext } from "../../batch/journal.ts";
import { isRootDirectory } from "../../catalog/base/location-names.ts";
import type { Row } from "../../catalog/state/row.ts";
import { forEachOf } from "../../concurrency/for-each.ts";
import { HOME_PROPERTY, homeOf, openFunctionsOf, warnOfDamaged } from "../../function-homes.ts";
import { requireOwner } from "../functions/require-owner.ts";

/** How often a drop looks again, because functions were created in what it drops. */
const MAX_ROUNDS = 10;

/** Number of tables whose functions are forgotten concurrently. */
const TABLES = 16;

/** The namespaces and tables that a mutation takes, as far as they may have functions. */
export interface Departing {
  note(row: Row | undefined): void;
  /** Ends the mutation, unless it is known what is in each noted namespace, and the functions of noted tables are forgotten. */
  check(): void;
}

/** Nothing is changed: the homes with these values are to be looked into first, and the tables at these locations to be forgotten. */
class UnknownContents extends Error {
  readonly values: readonly string[];
  readonly locations: readonly string[];

  constructor(values: readonly string[], locations: readonly string[]) {
    super("namespaces and tables may have functions");
    this.values = values;
    this.locations = locations;
  }
}

/**
 * Drops namespaces with their functions and secrets. The mutation that takes the rows decides: with them, the functions are out of everybody's
 * sight, also if nothing removes their files any more. The contents of a namespace are looked up after its row was read, and each
 * creation changes the row before it is acknowledged, so a drop misses none. The functions of columns are forgotten before, as by a drop of a table.
 *
 * @param takes whether the functions are dropped too
 * @throws LanceError NamespaceNotEmpty; PermissionDenied for functions of which the caller is not an owner
 */
export async function dropWithFunctions<T>(
  context: ChangeContext,
  call: Call,
  takes: boolean,
  drop: (departing: () => Departing) => Promise<T>,
): Promise<T> {
  const { contents, forgetTable } = openFunctionsOf(context);
  const known = new Set<string>();
  const forgotten = new Set<string>();
  const departing = (): Departing => {
    const values = new Set<string>();
    const locations = new Set<string>();
    return {
      note(row) {
        const location = row?.objectType === "table" ? row.location : undefined;
        // Only of these a later table may take the place.
        if (location !== undefined && isRootDirectory(location) && !forgotten.has(location))
          locations.add(location);
        const value = row?.objectType === "namespace" ? row.properties[HOME_PROPERTY] : undefined;
        if (value !== undefined && !known.has(value)) values.add(value);
      },
      check() {
        if (values.size + locations.size > 0) throw new UnknownContents([...values], [...locations]);
      },
    };
  };
  for (let round = 1; ; round++) {
    try {
      const answer = await drop(departing);
      if (known.size > 0) await removeGone();
      return answer;
    } catch (error) {
      if (!(error instanceof UnknownContents)) throw error;
      if (round === MAX_ROUNDS)
        throw new LanceError(
          "ConcurrentModification",
          "functions kept being created in the namespace; try again",
        );
      if (error.values.length > 0 && (await contents.areIn(new Set(error.values.map(homeOf))))) {
        if (!takes) throw notEmpty(call);
        await requireOwner(call);
      }
      for (const value of error.values) known.add(value);
      await forEachOf(error.locations, TABLES, forgetTable);
      for (const location of error.locations) forgotten.add(location);
    }
  }

  async function removeGone(): Promise<void> {
    try {
      for (const { remove } of await contents.findGone(warnOfDamaged(context))) await remove();
    } catch (error) {
      context.log.warn({ err: error }, "files of functions in a dropped namespace are left to gc");
    }
  }
}

/** Returns the refusal to drop a namespace with contents. */
export function notEmpty({ id }: Pick<Call, "id">): LanceError {
  return new LanceError("NamespaceNotEmpty", `Namespace not empty: '${joinIdentifier(id)}'`);
}
