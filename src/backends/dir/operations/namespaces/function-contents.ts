import type { Call } from "../../../../namespace/call/call.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import { joinIdentifier } from "../../../../namespace/identifier.ts";
import type { ChangeContext } from "../../batch/journal.ts";
import type { Row } from "../../catalog/state/row.ts";
import { HOME_PROPERTY, homeOf, openFunctionsOf } from "../../function-homes.ts";
import { requireOwner } from "../functions/require-owner.ts";

/** How often a drop looks again, because functions were created in what it drops. */
const MAX_ROUNDS = 10;

/** The namespaces that a mutation takes, as far as they may have functions. */
export interface Departing {
  note(row: Row | undefined): void;
  /** Ends the mutation, unless it is known what is in each noted namespace. */
  check(): void;
}

/** Nothing is changed: the homes with these values are to be looked into first. */
class UnknownHomes extends Error {
  readonly values: readonly string[];

  constructor(values: readonly string[]) {
    super("namespaces may have functions");
    this.values = values;
  }
}

/**
 * Drops namespaces with their functions and secrets. The mutation that takes the rows decides: with them, the functions are out of everybody's
 * sight, also if nothing removes their files any more. The contents of a namespace are looked up after its row was read, and each
 * creation changes the row before it is acknowledged, so a drop misses none.
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
  const { contents } = openFunctionsOf(context);
  const known = new Set<string>();
  const departing = (): Departing => {
    const values = new Set<string>();
    return {
      note(row) {
        const value = row?.objectType === "namespace" ? row.properties[HOME_PROPERTY] : undefined;
        if (value !== undefined && !known.has(value)) values.add(value);
      },
      check() {
        if (values.size > 0) throw new UnknownHomes([...values]);
      },
    };
  };
  for (let round = 1; ; round++) {
    try {
      const answer = await drop(departing);
      if (known.size > 0) await removeGone();
      return answer;
    } catch (error) {
      if (!(error instanceof UnknownHomes)) throw error;
      if (round === MAX_ROUNDS)
        throw new LanceError(
          "ConcurrentModification",
          "functions kept being created in the namespace; try again",
        );
      if (await contents.areIn(new Set(error.values.map(homeOf)))) {
        if (!takes) throw notEmpty(call);
        await requireOwner(call);
      }
      for (const value of error.values) known.add(value);
    }
  }

  async function removeGone(): Promise<void> {
    try {
      for (const { remove } of await contents.findGone()) await remove();
    } catch (error) {
      context.log.warn({ err: error }, "files of functions in a dropped namespace are left to gc");
    }
  }
}

/** Returns the refusal to drop a namespace with contents. */
export function notEmpty({ id }: Pick<Call, "id">): LanceError {
  return new LanceError("NamespaceNotEmpty", `Namespace not empty: '${joinIdentifier(id)}'`);
}
