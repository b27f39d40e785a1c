import { LanceError } from "../../../namespace/errors.ts";
import { type DatasetRef, normalizeBranch } from "../format/dataset.ts";
import type { CatalogVersion, VersionCatalog } from "../format/version-catalog.ts";
import { versionNotFound } from "../format/versions/version-files.ts";
import { relay } from "./failures/relayed.ts";

/** Answer to a request of the engine: a status and a JSON value. */
export interface EngineAnswer {
  readonly status: number;
  readonly body: object;
}

/** Requests of the engine about the versions of a table with managed versioning. */
export type VersionRequest = "create" | "describe" | "list";

/**
 * Returns the answer to a request about the versions of a table: the engine opens the version that the catalog says is the newest, and commits
 * through the catalog. An error gets through to the engine's caller, see {@link relay}.
 *
 * @param query parameters of the request's address, which are those of a list
 * @param text the body
 */
export async function answerVersions(
  versions: VersionCatalog,
  request: VersionRequest,
  query: URLSearchParams,
  text: string,
): Promise<EngineAnswer> {
  try {
    return { status: 200, body: await answer(versions, request, query, text) };
  } catch (error) {
    const known = error instanceof LanceError ? error : new LanceError("Internal", "", { cause: error });
    const { code, httpStatus } = known.entry;
    return { status: httpStatus, body: { code, error: relay(known) } };
  }
}

async function answer(
  versions: VersionCatalog,
  request: VersionRequest,
  query: URLSearchParams,
  text: string,
): Promise<object> {
  if (request === "list") {
    // The engine asks for the newest version alone.
    for await (const page of versions.list(normalizeBranch(query.get("branch") ?? undefined)))
      return { versions: page.map(toAnswer) };
    return { versions: [] };
  }
  const asked = JSON.parse(text) as Asked;
  const branch = normalizeBranch(asked.branch ?? undefined);
  const version = BigInt(asked.version);
  if (request === "create") {
    const { manifest_path: key, manifest_size: size, e_tag: eTag, naming_scheme: scheme } = asked;
    const staged = { version, key, size, eTag: eTag ?? undefined, scheme };
    return { version: toAnswer(await versions.commit(branch, staged)) };
  }
  const found = await versions.find(branch, version);
  if (found === undefined) throw versionNotFound({} as DatasetRef, version);
  return { version: toAnswer(found) };
}

/** Body of a request about a version, as the engine writes it. */
interface Asked {
  readonly version: number;
  readonly branch?: string | null;
  readonly manifest_path: string;
  readonly manifest_size: number;
  readonly e_tag?: string | null;
  readonly naming_scheme: "V1" | "V2";
}

function toAnswer({ version, key, size, eTag, timestampMillis }: CatalogVersion): object {
  return {
    version: Number(version),
    manifest_path: key,
    manifest_size: size,
    e_tag: eTag,
    timestamp_millis: timestampMillis,
  };
}
