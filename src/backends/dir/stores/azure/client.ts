import type { ClientSecretCredentialOptions, TokenCredential } from "@azure/identity";
import type { ContainerClient, StoragePipelineOptions } from "@azure/storage-blob";
import { LanceError } from "../../../../namespace/errors.ts";
import { loadLibrary } from "../../../load-library.ts";
import { type StoreFailure, toStoreError } from "../failure.ts";
import {
  clientOptionsOf,
  createOptionReader,
  type OptionReader,
  type StorageOptions,
} from "../storage-options.ts";
import { createTimeLimits, type TimeLimits } from "../time-limits.ts";

/** Maximum number of attempts of the library for a request. */
export const MAX_TRIES = 4;

/** Longest duration of an attempt, in milliseconds. */
const TRY_TIMEOUT = 30_000;

/** Account of emulators. */
const EMULATOR = {
  account: "devstoreaccount1",
  key: "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==",
  endpoint: "http://127.0.0.1:10000/devstoreaccount1",
};

/** Clients of a container: with retries, and with single attempts for requests whose retries must be visible. */
export interface AzureAccess {
  readonly client: ContainerClient;
  readonly single: ContainerClient;
  /** Client of small requests, whose attempts are shorter. */
  readonly small: ContainerClient;
  /** Name of the service. */
  readonly host: string;
  readonly limits: TimeLimits;
  /** Options with which the engine reaches the storage. */
  readonly engineOptions: StorageOptions;
  /** Options with which clients reach the storage; see {@link clientOptionsOf}. */
  readonly clientOptions: StorageOptions;
}

/**
 * Connects to a container of Azure Blob Storage, without a request.
 *
 * An account key, a SAS token or a service principal may be options; otherwise the library finds the machine's
 * identity as the Azure tools do.
 *
 * @throws Error with a single line for a missing package or an invalid option
 */
export async function openAzure(container: string, options: StorageOptions): Promise<AzureAccess> {
  const blob = await loadLibrary("az://", "@azure/storage-blob", () => import("@azure/storage-blob"));
  const { read, emulator, account, endpoint } = readAccount(options);
  const key = read.text("account_key", "access_key", "master_key") ?? (emulator ? EMULATOR.key : undefined);
  const sas = read.text("sas_token", "sas_key")?.replace(/^\?/, "");
  const url = `${endpoint}/${container}${sas === undefined ? "" : `?${sas}`}`;
  const credential =
    key !== undefined
      ? new blob.StorageSharedKeyCredential(account, key)
      : sas !== undefined
        ? new blob.AnonymousCredential()
        : await identityOf(read);
  const longest = read.duration("timeout") ?? TRY_TIMEOUT;
  const limits = createTimeLimits(longest);
  const tries = (maxTries: number, tryTimeoutInMs: number): StoragePipelineOptions => ({
    retryOptions: { maxTries, tryTimeoutInMs },
  });
  return {
    client: new blob.ContainerClient(url, credential, tries(MAX_TRIES, longest)),
    single: new blob.ContainerClient(url, credential, tries(1, longest)),
    small: new blob.ContainerClient(url, credential, tries(MAX_TRIES, limits.small)),
    host: new URL(endpoint).hostname,
    limits,
    // The engine needs the emulator's account explicitly.
    engineOptions: emulator
      ? { ...options, azure_storage_account_name: account, azure_storage_account_key: key ?? "" }
      : options,
    clientOptions: clientOptionsOf("az", { ...options, azure_storage_account_name: account }),
  };
}

/** A storage account, and where it is. */
export interface AzureAccount {
  readonly read: OptionReader;
  readonly emulator: boolean;
  readonly account: string;
  /** Without a slash at its end. */
  readonly endpoint: string;
}

/**
 * Reads the storage account from the options of a storage.
 *
 * @throws Error with a single line for an option that is missing or invalid
 */
export function readAccount(options: StorageOptions): AzureAccount {
  const read = createOptionReader(options, ["azure_storage_", "azure_"]);
  const emulator = read.flag("use_emulator") === true;
  const account = read.text("account_name") ?? (emulator ? EMULATOR.account : undefined);
  if (account === undefined) throw new Error("az:// needs the storage option azure_storage_account_name");
  const endpoint =
    read.text("endpoint") ?? (emulator ? EMULATOR.endpoint : `https://${account}.blob.core.windows.net`);
  if (endpoint.startsWith("http://") && !emulator && read.flag("allow_http") !== true) {
    throw new Error("an endpoint without TLS needs the storage option allow_http=true");
  }
  // The library looks the brackets up as part of a name.
  if (new URL(endpoint).hostname.startsWith("["))
    throw new Error("the storage option azure_storage_endpoint needs a name or an IPv4 address");
  return { read, emulator, account, endpoint: endpoint.replace(/\/$/, "") };
}

/** Returns the facts of a library's error. */
export function failureOf(thrown: unknown): StoreFailure {
  const { statusCode, code, name, details } = thrown as {
    readonly statusCode?: number;
    readonly code?: string;
    readonly name?: string;
    readonly details?: { readonly errorCode?: string; readonly requestId?: string };
  };
  return {
    status: statusCode,
    code: details?.errorCode ?? code ?? name ?? "Error",
    requestId: details?.requestId,
  };
}

/** Converts an error of the library to one for clients. */
export function toAzureError(thrown: unknown): unknown {
  if (thrown instanceof LanceError || thrown instanceof TypeError) return thrown;
  return (thrown as Error).name === "AbortError" ? thrown : toStoreError("Azure", failureOf(thrown));
}

type PipelinePolicy = NonNullable<ClientSecretCredentialOptions["additionalPolicies"]>[number]["policy"];

/** Longest pause before another request for a token, in milliseconds. */
const MAX_PAUSE_MS = 5_000;

/** Headers by which a service asks for a pause, each with its unit in milliseconds. */
const PAUSES = [
  ["retry-after", 1_000],
  ["retry-after-ms", 1],
  ["x-ms-retry-after-ms", 1],
] as const;

/**
 * Hides longer pauses, which the library would make for all calls: they share the request, and would fail for as long as the service
 * has said.
 */
const withoutLongPauses: PipelinePolicy = {
  name: "withoutLongPauses",
  async sendRequest(request, next) {
    const answer = await next(request);
    const { headers } = answer;
    // A date yields NaN, which is not short.
    const isShort = PAUSES.every(([name, unit]) => Number(headers.get(name) ?? 0) * unit <= MAX_PAUSE_MS);
    if (!isShort) for (const [name] of PAUSES) headers.delete(name);
    return answer;
  },
};

/**
 * Returns the identity of the gateway at Microsoft Entra: a service principal of the options, or that of the machine.
 *
 * @param httpClient sends the requests. Default: that of the library
 */
export async function identityOf(
  read: OptionReader,
  httpClient?: ClientSecretCredentialOptions["httpClient"],
): Promise<TokenCredential> {
  const options = {
    additionalPolicies: [{ policy: withoutLongPauses, position: "perRetry" as const }],
    ...(httpClient && { httpClient }),
  };
  const identity = await loadLibrary("az://", "@azure/identity", () => import("@azure/identity"));
  const [tenant, client, secret] = [
    read.text("tenant_id", "authority_id"),
    read.text("client_id"),
    read.text("client_secret"),
  ];
  return tenant !== undefined && client !== undefined && secret !== undefined
    ? new identity.ClientSecretCredential(tenant, client, secret, options)
    : new identity.DefaultAzureCredential(options);
}
