import type { EventEmitter } from "node:events";
import { addAbortSignal, type Readable } from "node:stream";
import type {
  ApiError,
  CreateReadStreamOptions,
  File,
  StorageOptions as GcsOptions,
} from "@google-cloud/storage";
import { loadLibrary } from "../../../load-library.ts";
import { inBounds } from "../bounded-requests.ts";
import type { StoreFailure } from "../failure.ts";
import { createOptionReader, type OptionReader, type StorageOptions } from "../storage-options.ts";
import { tooLong } from "../time-limits.ts";

/** Creates a reader for the options of Google Cloud Storage. */
export function optionReader(options: StorageOptions): OptionReader {
  return createOptionReader(options, ["google_", "gcs_"]);
}

/** A service account's key; as for the engine, it may name another endpoint and omit credentials. */
export interface ServiceKey {
  readonly gcs_base_url?: string;
  readonly disable_oauth?: boolean;
}

/** How the gateway signs in: by a file with a key, by a key, or as the machine. */
export interface ServiceAccount {
  readonly keyFilename: string | undefined;
  readonly key: ServiceKey | undefined;
}

/**
 * Reads the service account from the options of a storage.
 *
 * @throws Error with a single line for a key that is not JSON
 */
export function readServiceAccount(options: StorageOptions): ServiceAccount {
  const read = optionReader(options);
  const text = read.text("service_account_key");
  return {
    keyFilename: read.text("service_account", "service_account_path", "application_credentials"),
    key: text === undefined ? undefined : parseKey(text),
  };
}

/** Returns what signs in with a token, as the engine does, if the options have one and no key. */
export async function tokenAccess(options: StorageOptions): Promise<Pick<GcsOptions, "authClient">> {
  const token = optionReader(options).text("storage_token");
  if (token === undefined || readServiceAccount(options).key !== undefined) return {};
  const load = () => import("google-auth-library");
  const { OAuth2Client } = await loadLibrary("google_storage_token", "google-auth-library", load);
  const authClient = new OAuth2Client();
  authClient.setCredentials({ access_token: token });
  return { authClient };
}

function parseKey(text: string): ServiceKey {
  try {
    return JSON.parse(text) as ServiceKey;
  } catch {
    throw new Error("the storage option google_service_account_key must be the JSON of a key");
  }
}

/** Returns the facts of a library's error. */
export function failureOf(thrown: unknown): StoreFailure {
  const { code, errors, response } = thrown as ApiError & { response?: TokenRefusal };
  const status = Number(response?.status ?? code);
  const known = Number.isInteger(status) && status >= 100 && status < 600;
  const said = response?.data?.error;
  const word = errors?.[0]?.reason ?? (typeof said === "string" ? said : String(code ?? "Error"));
  return { status: known ? status : undefined, code: word };
}

/** Answer to a refused request for a token; those of the storage itself have an object as `error`. */
interface TokenRefusal {
  readonly status?: number;
  readonly data?: { readonly error?: unknown };
}

/** Number of listeners of an event from which on Node warns of a leak. The library's bodies have 11. */
const LISTENERS = 20;

/**
 * Opens the body of an object. A destroyed body, also one that has not begun, frees its connection.
 *
 * The library answers a broken body by destroying the agent that all its requests share, and fails these with it, so the
 * agent is kept from the library.
 *
 * @param signal destroys the body
 */
export function openBody(
  { host, file }: { readonly host: string; readonly file: File },
  part: CreateReadStreamOptions = {},
  signal?: AbortSignal,
): Readable {
  const body = file.createReadStream({ ...part, validation: false });
  const end = new AbortController();
  body.once("response", (answer: EventEmitter & { readonly request: { agent: unknown } }) => {
    answer.setMaxListeners(LISTENERS);
    answer.request.agent = undefined;
  });
  body.once("close", () => {
    if (!body.readableEnded) end.abort();
  });
  if (signal !== undefined) addAbortSignal(signal, body);
  const onTooLong = () => void body.destroy(tooLong());
  // The first read makes the request.
  inBounds({ host, signalOf: () => end.signal, isObject: true, onTooLong }, () => body.read(0));
  return body;
}
