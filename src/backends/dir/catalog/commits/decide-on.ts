import type { CommitBase } from "../manifest/commit-base.ts";
import type { ManifestTable } from "../manifest/manifest-table.ts";
import type { PropertyLimits } from "../state/properties-size.ts";
import { inSlicesOn } from "../state/steps.ts";
import { type Decision, decide, type Mutation } from "./decide.ts";

/**
 * Decides a group on the state of a version, without the mutations that would lose values of rows.
 *
 * @returns undefined if the version has disappeared, or must be read and is still being published
 * @throws StateChanged
 */
export async function decideOn(
  manifest: Pick<ManifestTable, "losing">,
  base: CommitBase,
  group: readonly Mutation<unknown>[],
  limits: PropertyLimits,
): Promise<Decision | undefined> {
  const kept = new Set<string>();
  // A refused mutation changes the state that later ones see, and these may then lose further rows. Each turn finds
  // at least one.
  for (;;) {
    const decision = await inSlicesOn(base.state, decide(base.state, group, kept, limits), base.revision);
    if (base.version === 0 || decision.changes.size === 0) return decision;
    const losing = await manifest.losing(base, decision.changes);
    if (losing === undefined) return undefined;
    const known = kept.size;
    for (const id of losing) kept.add(id);
    if (kept.size === known) return decision;
  }
}
