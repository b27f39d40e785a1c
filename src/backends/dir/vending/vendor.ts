import type { Call } from "../../../namespace/call/call.ts";
import { EXPIRY_OPTION, inEverySpelling } from "../../../namespace/credential-options.ts";
import { createTokenCache, type Token } from "../../upstream-identity/token-cache.ts";
import { boundedForAll } from "../stores/bounded-requests.ts";
import { toStoreError } from "../stores/failure.ts";
import type { StorageOptions } from "../stores/storage-options.ts";

/** Kinds of permissions that credentials carry; each includes those before it. */
export const PERMISSIONS = ["read", "write", "manage"] as const;

/** Permission for the files of a table: reading, also adding and replacing, also deleting. */
export type Permission = (typeof PERMISSIONS)[number];

/** Issues storage options with credentials for the directory of a table. */
export interface CredentialSource {
  /** @throws LanceError if the credentials cannot be issued */
  issue(key: string, permission: Permission): Promise<Token<StorageOptions>>;
  /** Returns the least permission with which credentials for a directory add files. Default: `write`. */
  leastToAdd?(key: string): Permission;
}

/** Hands out credentials to the callers that may have them. */
export interface Vendor {
  /**
   * Returns storage options with credentials for a table; none for a caller that may not read it.
   *
   * @param key key of the table's directory in its bucket
   * @param most the most that the credentials may allow
   * @throws LanceError if the credentials cannot be issued
   */
  vend(call: Pick<Call, "may">, key: string, most?: Permission): Promise<StorageOptions>;
  /**
   * Returns storage options with credentials for a job that runs outside of the gateway. They add files to a table, and
   * allow more only if the source has no others.
   *
   * @param key key of the table's directory in its bucket
   * @param most the most that the credentials may allow
   * @throws LanceError if the credentials cannot be issued
   */
  vendForWork(key: string, most?: Permission): Promise<StorageOptions>;
}

/** Options of {@link createVendor}. */
export interface VendorOptions {
  readonly source: CredentialSource;
  /** The most that credentials allow, whatever a caller may do. */
  readonly most: Permission;
  /** Whether the gateway asks nobody who calls, so that everyone gets {@link most}. Default: false. */
  readonly isOpen?: boolean | undefined;
  /** Maximum number of credentials that are kept. Default: 10,000. */
  readonly maxKept?: number | undefined;
  /** Maximum duration of issuing credentials, in milliseconds. Default: 30,000. */
  readonly timeoutMs?: number | undefined;
  /** The time in epoch milliseconds. Default: the system's. */
  readonly now?: (() => number) | undefined;
}

/**
 * How long before their expiry other credentials are issued, in milliseconds, unless a tenth of their life is less.
 * Clients describe a table again a minute before the expiry.
 */
const RENEW_BEFORE_MS = 5 * 60_000;

/**
 * Creates a vendor. It keeps credentials until shortly before they expire, by table and permission: callers with the
 * same permission get the same ones.
 */
export function createVendor(options: VendorOptions): Vendor {
  const { source, isOpen = false, maxKept: maxTokens = 10_000, timeoutMs = 30_000, now } = options;

  async function issueInTime(issue: () => Promise<Token<StorageOptions>>) {
    // Not every library has limits of its own, and all callers for a table wait for the same credentials.
    return boundedForAll(timeoutMs, issue).catch((error: NodeJS.ErrnoException) => {
      const { code } = error;
      throw code === "ETIMEDOUT" ? toStoreError("credentials", { status: undefined, code }) : error;
    });
  }
  const kept = createTokenCache<StorageOptions>({
    async fetch(subject) {
      const [permission, key] = JSON.parse(subject) as [Permission, string];
      const { value, expiresAt } = await issueInTime(() => source.issue(key, permission));
      const ends = Number.isFinite(expiresAt);
      const spelled = inEverySpelling(value);
      return { value: ends ? { ...spelled, [EXPIRY_OPTION]: String(expiresAt) } : spelled, expiresAt };
    },
    renewBeforeMs: RENEW_BEFORE_MS,
    maxTokens,
    now,
  });
  const credentials = (granted: Permission, key: string) => kept.get(JSON.stringify([granted, key]));
  return {
    async vend({ may }, key, most = "manage") {
      let granted: Permission | undefined;
      for (const permission of permissionsUpTo(options.most, most)) {
        const allowed = may === undefined ? isOpen : await may(permission);
        if (!allowed) break;
        granted = permission;
      }
      return granted === undefined ? {} : credentials(granted, key);
    },
    async vendForWork(key, most = "manage") {
      const needed = source.leastToAdd?.(key) ?? "write";
      return credentials(permissionsUpTo(options.most, most, needed).at(-1) ?? "read", key);
    },
  };
}

/** Returns the permissions that none of some limits excludes. */
function permissionsUpTo(...limits: readonly Permission[]): readonly Permission[] {
  return PERMISSIONS.slice(0, Math.min(...limits.map((each) => PERMISSIONS.indexOf(each))) + 1);
}

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
