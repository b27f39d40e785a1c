import type { TokenCredential } from "@azure/identity";
import type { UserDelegationKey } from "@azure/storage-blob";
import { LanceError } from "../../../namespace/errors.ts";
import { loadLibrary } from "../../load-library.ts";
import { failureOf, identityOf, readAccount } from "../stores/azure/client.ts";
import { toStoreError } from "../stores/failure.ts";
import type { StorageOptions } from "../stores/storage-options.ts";
import type { CredentialSource, Permission } from "./vendor.ts";

/** Options of {@link createSasSource}. */
export interface SasSourceOptions {
  readonly container: string;
  /** Options of the storage, which name the account. */
  readonly storageOptions: StorageOptions;
  /** Life of the signatures in milliseconds. */
  readonly durationMs: number;
  /** Identity that signs. Default: that of the options or of the machine, also if they have a key of the account. */
  readonly identity?: TokenCredential | undefined;
}

/** A key with which the gateway signs for a while. */
interface DelegationKey {
  readonly key: UserDelegationKey;
  /** In epoch milliseconds. */
  readonly expiresAt: number;
}

/** How long before now a key begins, in milliseconds, because clocks differ. */
const EARLIER_MS = 5 * 60_000;

/** Version of signatures, so that another release of the library signs alike. */
const VERSION = "2022-11-02";

/** Letters of a signature. It cannot leave out the marks of the catalog, so only who may manage may write. */
const LETTERS: Readonly<Record<Permission, string>> = { read: "rl", write: "rl", manage: "racwdl" };

/**
 * Creates a source of signatures for the directory of a table, which a user delegation key of the gateway's identity makes.
 *
 * @throws Error with a single line for a missing package, an invalid option, or an account without a hierarchical namespace, in
 *   which a signature reaches a single object or the whole container
 */
export async function createSasSource(options: SasSourceOptions): Promise<CredentialSource> {
  const { container, storageOptions, durationMs } = options;
  const user = "--vend azure-sas";
  const [blob, lake] = await Promise.all([
    loadLibrary(user, "@azure/storage-blob", () => import("@azure/storage-blob")),
    loadLibrary(user, "@azure/storage-file-datalake", () => import("@azure/storage-file-datalake")),
  ]);
  const { read, account, endpoint } = readAccount(storageOptions);
  const service = new blob.BlobServiceClient(endpoint, options.identity ?? (await identityOf(read)));
  let delegation = Promise.resolve<DelegationKey | undefined>(undefined);
  let isHierarchical = await hasDirectories().catch(() => undefined);
  if (isHierarchical === false) {
    throw new Error(
      `--vend azure-sas needs a storage account with a hierarchical namespace, unlike ${account}`,
    );
  }

  async function hasDirectories(): Promise<boolean> {
    return (await service.getAccountInfo()).isHierarchicalNamespaceEnabled === true;
  }

  /** Returns a key that outlives a signature; a new one serves as long again. */
  function delegationKey(): Promise<DelegationKey> {
    const next = delegation.then((known) =>
      known !== undefined && known.expiresAt >= Date.now() + durationMs ? known : fetchKey(),
    );
    delegation = next.catch(() => undefined);
    return next;
  }

  async function fetchKey(): Promise<DelegationKey> {
    const now = Date.now();
    const expiresAt = now + 2 * durationMs;
    const key = await service.getUserDelegationKey(new Date(now - EARLIER_MS), new Date(expiresAt));
    return { key, expiresAt };
  }

  return {
    leastToAdd: () => "manage",
    async issue(key, permission) {
      if (key === "") throw new LanceError("InvalidInput", "a table has no directory of its own");
      const signing = await signingKey().catch((error: unknown) => {
        throw error instanceof LanceError ? error : toStoreError("Azure", failureOf(error));
      });
      // The service counts whole seconds.
      const expiresAt = Math.floor((Date.now() + durationMs) / 1_000) * 1_000;
      const signature = lake.generateDataLakeSASQueryParameters(
        {
          fileSystemName: container,
          pathName: key,
          version: VERSION,
          isDirectory: true,
          directoryDepth: key.split("/").length,
          permissions: lake.DirectorySASPermissions.parse(LETTERS[permission]),
          expiresOn: new Date(expiresAt),
          protocol: endpoint.startsWith("https:") ? lake.SASProtocol.Https : lake.SASProtocol.HttpsAndHttp,
        },
        signing,
        account,
      );
      return { value: { azure_storage_sas_token: signature.toString() }, expiresAt };
    },
  };

  async function signingKey(): Promise<UserDelegationKey> {
    isHierarchical ??= await hasDirectories();
    if (!isHierarchical) {
      throw new LanceError("Unsupported", "the storage has no credentials that reach a single table");
    }
    return (await delegationKey()).key;
  }
}
