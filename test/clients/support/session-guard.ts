import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";
import { evaluate } from "../../fixtures/dir/vending-policy.ts";

/** A server in front of STS and S3 that refuses what the policy of a session does not allow. */
export interface SessionGuard {
  readonly url: string;
  /** The policies of all sessions so far. */
  readonly policies: readonly string[];
  close(): Promise<void>;
}

/** Options of {@link startSessionGuard}. */
export interface SessionGuardOptions {
  /** Address of the server behind it. */
  readonly target: string;
  /** Access key whose calls pass. */
  readonly owner: string;
  /** Life of a session as it is announced, in milliseconds. */
  readonly lifeMs: number;
}

interface Session {
  readonly policy: string;
  readonly token: string;
  readonly endsAt: number;
}

/** How long a session lasts beyond what was announced, so that requests on their way arrive on a busy machine. */
const GRACE_MS = 10_000;

/** Starts a guard. It checks access keys, tokens, ends and policies of sessions; signatures it does not check. */
export async function startSessionGuard(options: SessionGuardOptions): Promise<SessionGuard> {
  const { target, owner, lifeMs } = options;
  const sessions = new Map<string, Session>();
  const policies: string[] = [];

  /** Returns the code of a refusal. */
  function refusalOf(request: IncomingMessage, url: URL): string | undefined {
    const key = /Credential=([^/]+)\//.exec(request.headers.authorization ?? "")?.[1] ?? "";
    if (key === owner) return undefined;
    const session = sessions.get(key);
    if (session === undefined) return "InvalidAccessKeyId";
    if (request.headers["x-amz-security-token"] !== session.token) return "InvalidToken";
    if (Date.now() >= session.endsAt) return "ExpiredToken";
    const { action, resource } = accessOf(request.method ?? "", url);
    const context = { "s3:prefix": url.searchParams.get("prefix") ?? "" };
    return evaluate(session.policy, action, resource, context) ? undefined : "AccessDenied";
  }

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await buffer(request);
    const url = new URL(request.url ?? "", target);
    const refusal = refusalOf(request, url);
    if (refusal !== undefined) {
      const status = refusal === "AccessDenied" ? 403 : 400;
      response.writeHead(status, { "content-type": "application/xml" });
      response.end(request.method === "HEAD" ? undefined : `<Error><Code>${refusal}</Code></Error>`);
      return;
    }
    const { method = "GET", headers } = request;
    const passed = Object.entries(headers).filter(([name]) => !HOP_BY_HOP.has(name));
    const answer = await fetch(url, {
      method,
      headers: passed as [string, string][],
      ...(body.byteLength > 0 && { body }),
    });
    const bytes = Buffer.from(await answer.arrayBuffer());
    const isSession = method === "POST" && url.pathname === "/" && answer.ok;
    const content = isSession ? begin(String(body), String(bytes)) : bytes;
    const kept = [...answer.headers].filter(([name]) => !HOP_BY_HOP.has(name) && name !== "content-encoding");
    // The answer to a HEAD announces the length of the object.
    const length = method === "HEAD" ? answer.headers.get("content-length") : Buffer.byteLength(content);
    response.writeHead(answer.status, [
      ...kept.flat(),
      ...(length === null ? [] : ["content-length", String(length)]),
    ]);
    response.end(method === "HEAD" ? undefined : content);
  }

  /** Notes a session that begins, and shortens its life. */
  function begin(request: string, answer: string): string {
    const policy = new URLSearchParams(request).get("Policy") ?? "";
    const [, key = ""] = /<AccessKeyId>(.*?)</.exec(answer) ?? [];
    const [, token = ""] = /<SessionToken>(.*?)</.exec(answer) ?? [];
    const announced = Date.now() + lifeMs;
    policies.push(policy);
    sessions.set(key, { policy, token, endsAt: announced + GRACE_MS });
    return answer.replace(/<Expiration>.*?</, `<Expiration>${new Date(announced).toISOString()}<`);
  }

  const server = createServer((request, response) => {
    serve(request, response).catch((error: unknown) => response.destroy(error as Error));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    policies,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

const HOP_BY_HOP: ReadonlySet<string> = new Set([
  "connection",
  "content-length",
  "expect",
  "host",
  "keep-alive",
  "transfer-encoding",
]);

/** Returns the action of a request to S3 that names the bucket in its path, and its resource. */
function accessOf(method: string, { pathname, searchParams }: URL): { action: string; resource: string } {
  const [bucket = "", ...parts] = pathname.slice(1).split("/");
  const key = parts.map(decodeURIComponent).join("/");
  const resource = `arn:aws:s3:::${bucket}${key === "" ? "" : `/${key}`}`;
  if (key === "") return { action: method === "GET" ? "s3:ListBucket" : "s3:DeleteObject", resource };
  if (method === "GET" || method === "HEAD") return { action: "s3:GetObject", resource };
  if (method !== "DELETE") return { action: "s3:PutObject", resource };
  return {
    action: searchParams.has("uploadId") ? "s3:AbortMultipartUpload" : "s3:DeleteObject",
    resource,
  };
}
