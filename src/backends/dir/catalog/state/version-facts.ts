import type { Manifest } from "../../../../gen/lance/format/table_pb.ts";
import { type Verdict, verdictsIn } from "./verdicts.ts";

/** Facts of a version besides its rows. */
export interface VersionFacts {
  /** Outcomes of changes, by their ids. */
  readonly verdicts: ReadonlyMap<string, Verdict>;
  /** Name of the transaction that made the version, which no other version has; empty if its writer gave it none. */
  readonly transaction: string;
}

/** The facts of a state without a version. */
export const NO_FACTS: VersionFacts = { verdicts: new Map(), transaction: "" };

/** Returns the facts of a version. */
export function factsOf(manifest: Manifest): VersionFacts {
  return { verdicts: verdictsIn(manifest), transaction: manifest.transactionFile };
}
