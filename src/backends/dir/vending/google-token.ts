import type { GoogleAuthOptions } from "google-auth-library";
import { LanceError } from "../../../namespace/errors.ts";
import { loadLibrary } from "../../load-library.ts";
import { toStoreError } from "../stores/failure.ts";
import { failureOf, readServiceAccount } from "../stores/gcs/access.ts";
import type { StorageOptions } from "../stores/storage-options.ts";
import type { CredentialSource, Permission } from "./vendor.ts";

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

/** The directory of a table in a bucket of Google Cloud Storage, and what may be done with it. */
export interface BoundaryScope {
  readonly bucket: string;
  /** Key of the directory, without a slash at its end. */
  readonly key: string;
  readonly permission: Permission;
}

/** A Credential Access Boundary: what a token allows at most. The rules of a boundary add up. */
export interface AccessBoundary {
  readonly accessBoundary: { accessBoundaryRules: AccessBoundaryRule[] };
}

interface AccessBoundaryRule {
  readonly availableResource: string;
  readonly availablePermissions: string[];
  readonly availabilityCondition: { readonly expression: string };
}

/** Maximum number of characters of a condition. */
const MAX_LENGTH = 2048;

/** Rules that a permission adds to reading. The role for adding objects does not replace any. */
const MORE: Readonly<Record<Permission, readonly [role: string, exceptMarks: boolean][]>> = {
  read: [],
  write: [["roles/storage.objectCreator", true]],
  manage: [["roles/storage.objectUser", false]],
};

/**
 * Returns the boundary that cuts a token to the directory of a table: its objects, and listings below it.
 *
 * A caller that may write, but not manage, may not write the marks by which the catalog knows dropped and declared tables.
 *
 * @throws LanceError InvalidInput for an empty key; Unsupported for a key that is too long for a condition
 */
export function accessBoundary({ bucket, key, permission }: BoundaryScope): AccessBoundary {
  if (key === "") throw new LanceError("InvalidInput", "a table has no directory of its own");
  const path = `projects/_/buckets/${bucket}`;
  const objects = startsWith("resource.name", `${path}/objects/${key}/`);
  const listed = "api.getAttribute('storage.googleapis.com/objectListPrefix', '')";
  const rule = (role: string, expression: string): AccessBoundaryRule => {
    if (expression.length > MAX_LENGTH) {
      throw new LanceError(
        "Unsupported",
        "the location of the table is too long for credentials of its own; describe it with vend_credentials false",
      );
    }
    return {
      availableResource: `//storage.googleapis.com/${path}`,
      availablePermissions: [`inRole:${role}`],
      availabilityCondition: { expression },
    };
  };
  const marks = startsWith("resource.name", `${path}/objects/${key}/.lance-`);
  const more = MORE[permission].map(([role, exceptMarks]) =>
    rule(role, exceptMarks ? `${objects} && !${marks}` : objects),
  );
  const reading = rule("roles/storage.objectViewer", `${objects} || ${startsWith(listed, `${key}/`)}`);
  return { accessBoundary: { accessBoundaryRules: [reading, ...more] } };
}

function startsWith(value: string, prefix: string): string {
  return `${value}.startsWith('${literal(prefix)}')`;
}

/** Writes a text as the content of a string of CEL: everything but plain characters by its number. */
function literal(text: string): string {
  return text.replaceAll(/[^\w./=-]/gu, (character) => {
    const code = (character.codePointAt(0) as number).toString(16);
    return code.length > 4 ? `\\U${code.padStart(8, "0")}` : `\\u${code.padStart(4, "0")}`;
  });
}
