import { randomBytes, timingSafeEqual } from "node:crypto";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import type { VersionCatalog } from "../format/version-catalog.ts";
import { answerVersions, type VersionRequest } from "./managed-answers.ts";

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
