import { readdir, readFile } from "node:fs/promises";
import { extname, join } from "node:path";
import type { FastifyPluginCallback, FastifyReply } from "fastify";
import { refuseOtherMethods } from "./probes.ts";
import { type Coding, etagOf, type StaticFile, sendFile } from "./static-pages.ts";

/** Path of the console. */
const PLACE = "/console";

/** Where the page learns how its user signs in. */
const SIGN_IN = `${PLACE}/sign-in.json`;

/** An issuer at which the console signs in, as a public client. */
export interface ConsoleIssuer {
  readonly issuer: string;
  readonly clientId: string;
  /** Separated by spaces. */
  readonly scope: string;
}

/** How callers sign in, as the console asks for it. */
export interface ConsoleSignIn {
  /** Kinds of credentials that the gateway checks. */
  readonly methods: readonly ("api-key" | "token")[];
  /** Whether a call can choose one of several databases. */
  readonly hasDatabases: boolean;
  /** Issuers at which it signs in. */
  readonly issuers: readonly ConsoleIssuer[];
}

/** Options of {@link consolePlugin}. */
export interface ConsoleOptions {
  /** Directory of its build. */
  readonly directory: string;
  /** Returns how callers sign in now. */
  signIn(): ConsoleSignIn;
}

/**
 * Returns the policy of the page: it runs its own scripts and styles, and talks to the gateway that it comes from and to
 * issuers. It has no forms that a browser sends, no frames and no plugins, and no page may frame it.
 */
function contentSecurityPolicy(issuers: readonly ConsoleIssuer[]): string {
  const origins = issuers.map(({ issuer }) => new URL(issuer).origin);
  return [
    "default-src 'none'",
    "script-src 'self'",
    "worker-src 'self'",
    "style-src 'self'",
    `connect-src ${["'self'", ...new Set(origins)].join(" ")}`,
    // Images in tables, from memory.
    "img-src 'self' blob:",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join("; ");
}

const HEADERS = {
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  vary: "accept-encoding",
} as const;

/** Whether a path belongs to the console. */
export function isConsolePath(path: string): boolean {
  return path === PLACE || path.startsWith(`${PLACE}/`);
}

/** Serves the console below `/console/`. */
export const consolePlugin: FastifyPluginCallback<ConsoleOptions> = (app, { directory, signIn }, done) => {
  const readFiles = createConsoleFiles(directory);

  app.get(PLACE, (_request, reply) => reply.redirect("console/", 308));

  app.get<{ Params: { "*": string } }>(`${PLACE}/*`, async (request, reply) => {
    const files = await readFiles();
    reply.headers(HEADERS).header("content-security-policy", contentSecurityPolicy(signIn().issuers));
    if (files === undefined) return notBuilt(reply);
    const file = files.get(request.params["*"] || PAGE);
    if (file === undefined) return reply.code(404).type("text/plain").send("the console has no such file\n");
    return sendFile(file, request, reply);
  });

  app.get(SIGN_IN, async (_request, reply) =>
    reply.headers({ ...HEADERS, "cache-control": "no-store" }).send(signIn()),
  );

  for (const url of [PLACE, `${PLACE}/*`, SIGN_IN]) refuseOtherMethods(app, url);
  done();
};

/** Answers while a build may be in progress; the browser asks again. */
function notBuilt(reply: FastifyReply): FastifyReply {
  return reply
    .code(503)
    .headers({ "retry-after": "2", refresh: "2", "cache-control": "no-store" })
    .type("text/plain")
    .send("The console is being built. This page tries again in two seconds.\n");
}

/** Codings of a file's content, the smallest first, with the endings of their files. */
const CODINGS = { br: ".br", gzip: ".gz" } as const;

/** Files of the console, by path below its directory. */
type ConsoleFiles = ReadonlyMap<string, StaticFile>;

const TYPES: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
  ".md": "text/markdown; charset=utf-8",
};

/** Names that the build derives from contents. */
const HASHED = /-[\w-]{8}\.\w+$/;

/** Name of the page itself. */
const PAGE = "index.html";

/**
 * Returns the function that reads the built console into memory, once it is there; until then the function returns
 * undefined, because a build may be in progress.
 *
 * @param directory where the build is.
 */
function createConsoleFiles(directory: string): () => Promise<ConsoleFiles | undefined> {
  let reading: Promise<ConsoleFiles | undefined> | undefined;
  return async () => {
    reading ??= readAll(directory).catch(() => undefined);
    const files = await reading;
    if (!files?.has(PAGE)) reading = undefined;
    return reading && files;
  };
}

async function readAll(directory: string): Promise<ConsoleFiles> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  const paths = entries
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name).slice(directory.length + 1));
  const contents = new Map(
    await Promise.all(paths.map(async (path) => [path, await readFile(join(directory, path))] as const)),
  );
  const files = new Map<string, StaticFile>();
  for (const [path, content] of contents) {
    const type = TYPES[extname(path)];
    if (type === undefined) continue;
    const coded = Object.entries(CODINGS).flatMap(([coding, ending]) => {
      const found = contents.get(path + ending);
      return found === undefined ? [] : [[coding as Coding, found] as const];
    });
    files.set(path, {
      type,
      etag: etagOf(content),
      isImmutable: HASHED.test(path),
      content,
      coded: new Map(coded),
    });
  }
  return files;
}
