import { setTimeout as sleep } from "node:timers/promises";
import { create } from "@bufbuild/protobuf";
import {
  BatchDeleteTableVersionsRequestSchema,
  CreateTableVersionRequestSchema,
  DescribeTableVersionRequestSchema,
  ListTableVersionsRequestSchema,
  ManifestNamingScheme,
  type TableVersion,
} from "../../../gen/lance/namespace/v1/version_pb.ts";
import { type Call, copyCall } from "../../../namespace/call/call.ts";
import { type ErrorName, isLanceError, LanceError } from "../../../namespace/errors.ts";
import { type Identifier, joinIdentifier } from "../../../namespace/identifier.ts";
import type { Backend, LanceNamespace } from "../../../namespace/lance-namespace.ts";
import { METHODS } from "../../../namespace/operations/operations.ts";
import { putNewest } from "../../../runtime/collections.ts";
import { keyOfManifestPath, versionsDirectory } from "../../dir/format/dataset.ts";
import type { CatalogVersion, StagedManifest, VersionCatalog } from "../../dir/format/version-catalog.ts";
import { RefusedCommit } from "../../dir/format/versions/catalog-store.ts";
import { callOfJob } from "../described-tables.ts";

/** The versions of a table that the upstream commits, as the caller of the calls that run. */
export interface UpstreamVersions extends VersionCatalog {
  /**
   * Has requests made as the caller of a call, which is the same for all calls.
   *
   * @returns ends it
   */
  addSource(call: Call): () => void;
  /** Returns why the upstream has refused a version, if an error of the engine says that its commit has an unknown outcome. */
  refusalIn(error: unknown): RefusedCommit | undefined;
}

/** Operations of the upstream about versions. */
type VersionOperation =
  | "createTableVersion"
  | "listTableVersions"
  | "describeTableVersion"
  | "batchDeleteTableVersions";

/** Number of requests for a commit whose answers are lost, and the pause between them in milliseconds. */
const ATTEMPTS = 3;
const PAUSE_MS = 200;

/** Longest wait for the answer to a request, in milliseconds. */
const ANSWER_MS = 60_000;

/** Number of versions of a page after the first, and the maximum number of pages without any in succession. */
const PAGE = 1_000;
const MAX_EMPTY_PAGES = 100;

/** Errors by which the upstream says that it has not committed a version, and why. */
const REFUSALS: readonly ErrorName[] = [
  "PermissionDenied",
  "Unauthenticated",
  "Unsupported",
  "RouteNotFound",
  "MethodNotAllowed",
  "TableNotFound",
  "NamespaceNotFound",
  "TableBranchNotFound",
  "InvalidInput",
  "InvalidTableState",
  "Throttling",
];

/** Errors by which the upstream says that a version, or all of a table or branch, does not exist. */
const NO_VERSIONS: readonly ErrorName[] = ["TableNotFound", "TableVersionNotFound", "TableBranchNotFound"];

/** Maximum number of versions of which it is remembered why commits were refused, or that the outcome of one may be unknown. */
const MAX_REFUSED = 100;

/** How long the engine may take to report a commit with an unknown outcome, in milliseconds. */
const TOLD_MS = 4 * ANSWER_MS;

/**
 * Creates the versions of a table that the upstream commits.
 *
 * @param root key of the table's directory
 */
export function createUpstreamVersions(
  { operations }: Pick<Backend, "operations">,
  id: Identifier,
  root: string,
): UpstreamVersions {
  /** The newest one is the last. */
  const sources = new Set<{ readonly call: Call }>();
  /** Why the newest attempts to commit versions were refused, by their numbers. */
  const refused = new Map<string, RefusedCommit>();
  /** Until when errors of the engine may be about a commit of a version that was not refused, by the process's monotonic clock. */
  const doubtful = new Map<string, number>();
  const name = JSON.stringify(joinIdentifier(id));

  /** Returns an operation of the upstream as the caller of a running call. @throws LanceError Unsupported */
  function asCaller<N extends VersionOperation>(operation: N) {
    const handler = operations[operation] as LanceNamespace[N] | undefined;
    if (handler === undefined)
      throw new LanceError(
        "Unsupported",
        `the upstream catalog commits the versions of ${name} itself (managed versioning), and has no operation ${operation}`,
      );
    const source = [...sources].at(-1);
    if (source === undefined) throw new Error("no call uses the table");
    const deadline = Date.now() + ANSWER_MS;
    const call = copyCall(callOfJob(source.call, id), { method: METHODS[operation], deadline });
    return (request: Parameters<LanceNamespace[N]>[0]) =>
      handler(request as never, call) as ReturnType<LanceNamespace[N]>;
  }
  /**
   * Reads a version out of an answer.
   *
   * @throws LanceError PermissionDenied for a manifest that is not the table's; InvalidTableState for a number that no table has
   */
  function toVersion(branch: string | undefined, { version, ...told }: TableVersion): CatalogVersion {
    const { manifestPath, manifestSize: size, eTag, timestampMillis: millis } = told;
    if (version < 0n || version > Number.MAX_SAFE_INTEGER)
      throw invalidVersions(`the upstream catalog has a version ${version} of ${name}`);
    const key = keyOfManifestPath(manifestPath);
    const directory = `${versionsDirectory({ root, branch })}/`;
    const file = key.startsWith(directory) ? key.slice(directory.length) : "";
    if (!/^[\w.-]*\.manifest[\w.-]*$/.test(file) || file.includes(".."))
      throw new LanceError(
        "PermissionDenied",
        `the upstream catalog names a manifest of ${name} that is not in the table's _versions directory`,
      );
    return {
      version,
      key,
      ...(size !== undefined && { size: Number(size) }),
      ...(eTag !== undefined && { eTag }),
      ...(millis !== undefined && { timestampMillis: Number(millis) }),
    };
  }
  const placeOf = (branch: string | undefined) => ({ id: [...id], ...(branch !== undefined && { branch }) });

  async function* list(branch: string | undefined): AsyncGenerator<readonly CatalogVersion[]> {
    const ask = asCaller("listTableVersions");
    let [pageToken, empty] = ["", 0];
    let limit: number | undefined = 1;
    /** The oldest version that was yielded, and the one before in the same run of pages. */
    let [oldest, previous] = [undefined as bigint | undefined, undefined as bigint | undefined];
    for (;;) {
      const request = create(ListTableVersionsRequestSchema, {
        ...placeOf(branch),
        descending: true,
        ...(limit !== undefined && { limit }),
        ...(pageToken !== "" && { pageToken }),
      });
      const answer = await orNone(ask(request));
      const page = (answer?.versions ?? []).map((version) => toVersion(branch, version));
      for (const { version } of page) {
        if (previous !== undefined && version >= previous)
          throw invalidVersions(`the upstream catalog lists versions of ${name} twice`);
        previous = version;
      }
      const known = oldest;
      const older = page.filter(({ version }) => known === undefined || version < known);
      oldest = older.at(-1)?.version ?? oldest;
      if (older.length > 0) yield older;
      empty = page.length > 0 ? 0 : empty + 1;
      if (empty > MAX_EMPTY_PAGES)
        throw invalidVersions(`the upstream catalog lists versions of ${name} by pages without any`);
      pageToken = answer?.pageToken ?? "";
      if (pageToken !== "") {
        if (limit !== undefined) limit = PAGE;
      } else {
        if (limit === undefined || page.length < limit) return;
        // Some catalogs, such as pylance's adapter, cut a listing off without a token.
        [limit, previous] = [undefined, undefined];
      }
    }
  }
  async function commitOnce(
    branch: string | undefined,
    { version, key, size, eTag, scheme }: StagedManifest,
  ): Promise<TableVersion> {
    const request = create(CreateTableVersionRequestSchema, {
      ...placeOf(branch),
      version,
      manifestPath: key,
      manifestSize: BigInt(size),
      ...(eTag !== undefined && { eTag }),
      namingScheme: scheme === "V1" ? ManifestNamingScheme.V1 : ManifestNamingScheme.V2,
    });
    const { version: committed } = await asCaller("createTableVersion")(request);
    if (committed?.version === version) return committed;
    throw new LanceError("Internal", "the upstream catalog has not said which version it has committed");
  }
  /** Commits a version, and asks again while answers are lost. */
  async function commit(branch: string | undefined, staged: StagedManifest): Promise<TableVersion> {
    const number = String(staged.version);
    refused.delete(number);
    const doubt = (error: LanceError) => {
      putNewest(doubtful, number, performance.now() + TOLD_MS, MAX_REFUSED);
      return error;
    };
    let lost: unknown;
    for (let attempt = 1; ; attempt++) {
      try {
        return await commitOnce(branch, staged);
      } catch (error) {
        // The engine may not find out which writer has the number.
        if (isLanceError(error, "ConcurrentModification")) throw doubt(error);
        const isUnsent = error instanceof LanceError && error.fault === "unreached";
        const isRefused = REFUSALS.some((kind) => isLanceError(error, kind));
        if (lost === undefined && (isRefused || (isUnsent && attempt === ATTEMPTS))) {
          const { kind, message } = error as LanceError;
          const text = `the upstream catalog does not commit version ${number} of ${name}: ${message}`;
          const refusal = new RefusedCommit(kind, text, { cause: error });
          putNewest(refused, number, refusal, MAX_REFUSED);
          throw refusal;
        }
        if (!isUnsent) lost ??= error;
        if (attempt === ATTEMPTS || isRefused) throw doubt(unknownCommit(staged.version, lost));
      }
      await sleep(PAUSE_MS);
    }
  }
  return {
    root,
    list,
    async find(branch, version) {
      const request = create(DescribeTableVersionRequestSchema, { ...placeOf(branch), version });
      const found = (await orNone(asCaller("describeTableVersion")(request)))?.version;
      if (found === undefined || found.version === version) return found && toVersion(branch, found);
      throw invalidVersions(
        `the upstream catalog describes version ${found.version} of ${name} instead of ${version}`,
      );
    },
    commit: async (branch, staged) => toVersion(branch, await commit(branch, staged)),
    async delete(branch, version) {
      const ranges = [{ startVersion: version, endVersion: version + 1n }];
      const request = create(BatchDeleteTableVersionsRequestSchema, { ...placeOf(branch), ranges });
      return ((await orNone(asCaller("batchDeleteTableVersions")(request)))?.deletedCount ?? 0n) > 0n;
    },
    addSource(call) {
      const source = { call: callOfJob(call, id) };
      sources.add(source);
      return () => void sources.delete(source);
    },
    refusalIn(error) {
      if (!isLanceError(error, "OutcomeUnknown") || !(error.cause instanceof Error)) return undefined;
      const version = /Commit result for version (\d+) is unknown/.exec(error.cause.message)?.[1];
      // The error names no branch, and may be about another commit of the same number.
      if (version === undefined || (doubtful.get(version) ?? 0) > performance.now()) return undefined;
      return refused.get(version);
    },
  };
}

/** Waits for an answer; undefined if it says that none exist. */
async function orNone<T>(answer: Promise<T>): Promise<T | undefined> {
  try {
    return await answer;
  } catch (error) {
    if (NO_VERSIONS.some((kind) => isLanceError(error, kind))) return undefined;
    throw error;
  }
}

const invalidVersions = (text: string) => new LanceError("InvalidTableState", text);

function unknownCommit(version: bigint, cause: unknown): LanceError {
  return new LanceError(
    "OutcomeUnknown",
    `the upstream catalog has not said whether it has committed version ${version}; look before you repeat it`,
    { cause },
  );
}
