import type { StorageOptions } from "../stores/storage-options.ts";
import { type CredentialSource, PERMISSIONS, type Permission } from "./vendor.ts";

/** Options that the tables below a directory of the bucket have in common. */
export interface StaticOptions {
  /** Key of the directory; empty for the whole bucket. */
  readonly key: string;
  /** Permission that the credentials among the options carry. */
  readonly permission: Permission;
  readonly options: StorageOptions;
}

/**
 * Creates a source that hands out configured options: of the closest directory around the table those that allow the most that
 * the caller may have. It has none for a table outside of all directories.
 */
export function createStaticSource(all: readonly StaticOptions[]): CredentialSource {
  const rank = ({ permission }: StaticOptions) => PERMISSIONS.indexOf(permission);
  const inOrder = all.toSorted((a, b) => b.key.length - a.key.length || rank(b) - rank(a));
  const around = (key: string) => inOrder.filter((each) => isWithin(key, each.key));
  return {
    leastToAdd(key) {
      const found = around(key);
      const adding = found.filter((each) => each.key === found[0]?.key && each.permission !== "read");
      return adding.at(-1)?.permission ?? "write";
    },
    async issue(key, permission) {
      const found = around(key).find((each) => rank(each) <= PERMISSIONS.indexOf(permission));
      return { value: found?.options ?? {}, expiresAt: Number.POSITIVE_INFINITY };
    },
  };
}

/** Whether a key is a directory, or in it. */
function isWithin(key: string, directory: string): boolean {
  return directory === "" || key === directory || key.startsWith(`${directory}/`);
}
