import type { ArrowSchema } from "../../../../arrow/schema.ts";
import type { NativeTable } from "../../engine/native/native.ts";
import { exactFilter } from "../../engine/sql/exact-filter.ts";
import type { DatasetRef } from "../../format/dataset.ts";
import { readIndices } from "../../format/files/index-section.ts";
import { readVersion } from "../../format/versions/version-files.ts";

/** Returns a checked condition over a table in the form in which the engine evaluates it correctly; see {@link exactFilter}. */
export async function safeFilter<T extends string | undefined>(
  filter: T,
  dataset: DatasetRef,
  native: Pick<NativeTable, "version">,
  schema: () => Promise<ArrowSchema>,
): Promise<T | string> {
  if (filter === undefined) return filter;
  const { fields } = await schema();
  return exactFilter(filter, fields, async () => {
    try {
      const version = BigInt(await native.version());
      return (await readIndices(await readVersion(dataset, version))).map(({ type }) => type);
    } catch {
      // The manifest may be newer than the gateway, or pruned by now.
      return undefined;
    }
  });
}
