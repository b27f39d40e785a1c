import { type Decision, decide, type Mutation } from "./decide.ts";
import type { ManifestTable } from "./manifest-table.ts";
import type { CatalogState } from "./state.ts";
import { inSlicesOn } from "./steps.ts";

/**
 * Decides a group on the state of a version, without the mutations that would lose values of rows.
 *
 * @returns undefined if the version has disappeared
 * @throws StateChanged
 */
export async function decideOn(
  manifest: Pick<ManifestTable, "losing">,
  version: number,
  state: CatalogState,
  group: readonly Mutation<unknown>[],
): Promise<Decision | undefined> {
  const kept = new Set<string>();
  // A refused mutation changes the state that later ones see, and these may then lose further rows. Each turn finds
  // at least one.
  for (;;) {
    const decision = await inSlicesOn(state, decide(state, group, kept));
    if (version === 0 || decision.changes.size === 0) return decision;
    const losing = await manifest.losing(version, state, decision.changes);
    if (losing === undefined) return undefined;
    const known = kept.size;
    for (const id of losing) kept.add(id);
    if (kept.size === known) return decision;
  }
}
