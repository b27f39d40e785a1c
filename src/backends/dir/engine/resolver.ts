import { randomBytes, timingSafeEqual } from "node:crypto";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { LanceError } from "../../../namespace/errors.ts";
import { type DatasetRef, normalizeBranch } from "../format/dataset.ts";
import type { CatalogVersion, VersionCatalog } from "../format/version-catalog.ts";
import { versionNotFound } from "../format/versions/version-files.ts";
import { relay } from "./failures/meanings.ts";

/**
 * The engine opens a table wherever a namespace server says that it is. This is that server: it listens on the
 * loopback interface, answers only requests with its own secret, and finds the location in the table's name, which
 * {@link tableName} made.
 */
export interface Resolver {
  /** Properties of the engine's namespace connection. */
  readonly properties: Record<string, string>;
  close(): Promise<void>;
}

const SECRET_HEADER = "x-lance-gateway-secret";

/** A table whose versions a catalog commits, and the catalog. */
export interface ManagedTable {
  readonly location: string;
  readonly versions: VersionCatalog;
}

/** Options with which the engine opens a storage; a function returns those of the moment, such as credentials that are renewed. */
export type EngineOptionsSource =
  | Readonly<Record<string, string>>
  | (() => Promise<Readonly<Record<string, string>>>);

/** Returns the engine's name for the table at a location. */
export function tableName(location: string): string {
  return Buffer.from(location).toString("base64url");
}

/**
 * Starts a resolver on a free port.
 *
 * The engine asks again for options with an end, `expires_at_millis`, before that end.
 *
 * @param storageOptions options with which the engine opens the storage of the locations
 * @param managed the table whose versions the engine commits through a catalog. Default: the engine commits all versions itself
 */
export async function createResolver(
  storageOptions: EngineOptionsSource = {},
  managed?: ManagedTable,
): Promise<Resolver> {
  const secret = randomBytes(32).toString("hex");
  const server = createServer((request, response) => {
    const answer = (status: number, body: object) => {
      response.writeHead(status, { "content-type": "application/json" });
      response.end(JSON.stringify(body));
    };
    const [, name, kind, query = ""] = ASKED.exec(request.url ?? "") ?? [];
    const isAsked = name !== undefined && hasSecret(request, secret);
    const location = Buffer.from(name ?? "", "base64url").toString();
    const table = location === managed?.location ? managed : undefined;
    if (isAsked && kind !== undefined && table !== undefined) {
      const parameters = new URLSearchParams(query);
      text(request)
        .then((body) => answerVersions(table.versions, kind as VersionRequest, parameters, body))
        .then(
          ({ status, body }) => answer(status, body),
          () => response.destroy(),
        );
      return;
    }
    request.resume();
    if (!isAsked || kind !== undefined) return answer(404, { code: 4, error: "not found" });
    const managing = table === undefined ? {} : { managed_versioning: true };
    if (typeof storageOptions !== "function")
      return answer(200, { location, storage_options: storageOptions, ...managing });
    storageOptions().then(
      (options) => answer(200, { location, storage_options: options, ...managing }),
      () => answer(503, { code: 17, error: "the credentials of the storage cannot be renewed" }),
    );
  });
  // The engine pools its connections, and a request fails if the server closes its connection at that moment. So only
  // the engine closes them.
  Object.assign(server, { keepAliveTimeout: 0, headersTimeout: 0, requestTimeout: 0 });
  const listening = Promise.withResolvers<void>();
  const rejected = listening.reject;
  server.on("error", rejected);
  server.listen(0, "127.0.0.1", listening.resolve);
  await listening.promise;
  // If connections cannot be accepted for lack of file descriptors, the engine retries them.
  server.off("error", rejected).on("error", () => {});
  // The server must not keep an idle process alive.
  server.unref();
  const { port } = server.address() as AddressInfo;
  return {
    properties: { uri: `http://127.0.0.1:${port}`, [`headers.${SECRET_HEADER}`]: secret },
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Path of a request: the name of the table, what is asked about its versions, if it is about them, and the parameters. */
const ASKED = /^\/v1\/table\/([\w-]+)\/(?:describe|declare|version\/(create|describe|list))(?:\?(.*))?$/;

function hasSecret(request: IncomingMessage, secret: string): boolean {
  const given = Buffer.from(String(request.headers[SECRET_HEADER] ?? ""));
  const expected = Buffer.from(secret);
  return given.byteLength === expected.byteLength && timingSafeEqual(given, expected);
}

/** Answer to a request of the engine: a status and a JSON value. */
export interface EngineAnswer {
  readonly status: number;
  readonly body: object;
}

/** Requests of the engine about the versions of a table with managed versioning. */
type VersionRequest = "create" | "describe" | "list";

/**
 * Returns the answer to a request about the versions of a table: the engine opens the version that the catalog says is the newest, and commits
 * through the catalog. An error gets through to the engine's caller, see {@link relay}.
 *
 * @param query parameters of the request's address, which are those of a list
 * @param text the body
 */
async function answerVersions(
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
