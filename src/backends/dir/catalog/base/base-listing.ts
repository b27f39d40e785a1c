import { createSharedCheck } from "../../../../runtime/shared-check.ts";
import { allowStaleness, type Staleness } from "../../concurrency/allow-staleness.ts";
import { createStampMemory } from "../../format/directory-stamp.ts";
import type { ObjectStore } from "../../format/storage.ts";
import { compareNames } from "../state/names.ts";
import type { Layout } from "./layout.ts";
import { rootName } from "./location-names.ts";

/**
 * Creates a listing of the tables that directories in the base may represent: the names of the `*.lance` directories
 * without that ending, in the order of {@link compareNames}, including every directory that was created before the
 * call.
 *
 * On a disk it reads the base again only if its stamp has changed, or was too young to prove anything.
 */
export function createBaseListing(
  store: ObjectStore,
  layout: Pick<Layout, "baseKey" | "tableDirectories">,
  staleness: Staleness,
): () => Promise<readonly string[]> {
  let names: readonly string[] = [];
  const stamps = createStampMemory();

  const look = createSharedCheck(async () => {
    const before = performance.now();
    const seen = store.files?.directoryStamp(layout.baseKey);
    if (seen !== undefined && stamps.isUnchanged(seen)) return;
    const directories = await layout.tableDirectories();
    names = directories.map(rootName).sort(compareNames);
    if (seen === undefined) stamps.forget();
    else stamps.note(seen, before);
  });
  const lenient = allowStaleness(look, staleness);
  return async () => {
    await lenient();
    return names;
  };
}
