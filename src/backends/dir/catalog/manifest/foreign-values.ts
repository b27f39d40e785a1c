import type { Manifest } from "../../../../gen/lance/format/table_pb.ts";
import type { CatalogView, Changes } from "../state/view.ts";
import type { BaseState } from "./commit-base.ts";
import { isPlainFragment, rowFormatOf } from "./row-fragment.ts";

/**
 * Returns a condition that finds the rows that would lose values in a commit: the commit rewrites them without the
 * columns that are unknown here, in which other writers may have put values.
 *
 * @returns undefined if there cannot be any
 */
export function foreignValues(manifest: Manifest, state: BaseState, changes: Changes): string | undefined {
  const format = rowFormatOf(manifest);
  if (format.otherColumns.length === 0) return undefined;
  const plain = new Set(
    manifest.fragments.filter((fragment) => isPlainFragment(fragment, format)).map(({ id }) => Number(id)),
  );
  const ids = rewrittenIds(state, changes).filter((id) =>
    state.addressesOf(id)?.some(({ fragment }) => !plain.has(fragment)),
  );
  if (ids.length === 0) return undefined;
  const values = format.otherColumns.map(({ name }) => `\`${name}\` IS NOT NULL`);
  return `object_id IN (${ids.map(quoted).join(", ")}) AND (${values.join(" OR ")})`;
}

/** Returns the ids of rows that remain in another form: replaced, or renamed with the directory that they keep. */
export function rewrittenIds(state: CatalogView, changes: Changes): string[] {
  const locations = new Set<string>();
  for (const row of changes.values()) if (row?.location !== undefined) locations.add(row.location);
  const ids: string[] = [];
  for (const [id, row] of changes) {
    const before = state.get(id);
    if (before === undefined) continue;
    if (row !== undefined || locations.has(before.location ?? "")) ids.push(id);
  }
  return ids;
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}
