import type { GoogleAuthOptions } from "google-auth-library";
import { loadLibrary } from "../../load-library.ts";
import { toStoreError } from "../stores/failure.ts";
import { failureOf, readServiceAccount } from "../stores/gcs/access.ts";
import type { StorageOptions } from "../stores/storage-options.ts";
import { accessBoundary } from "./access-boundary.ts";
import type { CredentialSource } from "./vendor.ts";

/** Options of {@link createGoogleSource}. */
export interface GoogleSourceOptions {
  readonly bucket: string;
  /** Options of the storage, whose service account is also the source of the tokens. */
  readonly storageOptions: StorageOptions;
}

/** Tokens belong to no project. Without a value, the library starts `gcloud` to find one, which takes seconds. */
const NO_PROJECT = "none";

/**
 * Least life of the token from which others are cut, in milliseconds: they end with it. The service issues tokens for an hour.
 */
const LEAST_LIFE_MS = 30 * 60_000;

/**
 * Creates a source of tokens of the gateway's service account, which an access boundary cuts to a table's directory.
 *
 * @throws Error with a single line for a missing package or an invalid option
 */
export async function createGoogleSource(options: GoogleSourceOptions): Promise<CredentialSource> {
  const { bucket, storageOptions } = options;
  const user = "--vend google-token";
  const sdk = await loadLibrary(user, "google-auth-library", () => import("google-auth-library"));
  const { keyFilename, key } = readServiceAccount(storageOptions);
  const auth = new sdk.GoogleAuth({
    projectId: NO_PROJECT,
    scopes: "https://www.googleapis.com/auth/cloud-platform",
    clientOptions: { eagerRefreshThresholdMillis: LEAST_LIFE_MS },
    ...(keyFilename !== undefined && { keyFilename }),
    ...(key !== undefined && { credentials: key as NonNullable<GoogleAuthOptions["credentials"]> }),
  });
  return {
    async issue(key, permission) {
      const credentialAccessBoundary = accessBoundary({ bucket, key, permission });
      const { token, expirationTime } = await downscoped(credentialAccessBoundary).catch((error: unknown) => {
        throw toStoreError("Google STS", failureOf(error));
      });
      if (!token || !expirationTime)
        throw toStoreError("Google STS", { status: undefined, code: "IncompleteAnswer" });
      return { value: { google_storage_token: token }, expiresAt: expirationTime };
    },
  };

  async function downscoped(credentialAccessBoundary: ReturnType<typeof accessBoundary>) {
    const authClient = await auth.getClient();
    return new sdk.DownscopedClient({ authClient, credentialAccessBoundary }).getAccessToken();
  }
}
