/* Fixtures of this folder's tests. */
import { createServer, type IncomingMessage, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import type { TestContext } from "vitest";
import { bodyOf } from "../../../../test/support/request-body.ts";
import type { ObjectStore } from "../format/storage.ts";
import { createS3Store } from "./s3/s3.ts";

/** An answer of a server that speaks a little S3; `hang` means no answer, `reset` the end of the connection. */
export type Answer =
  | readonly [status: number, code?: string, headers?: Readonly<Record<string, string>>]
  | "hang"
  | "reset";

/** A request as the server received it. */
export interface Seen {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}

/** A secret that must not appear anywhere. */
export const SECRET = "a-secret-that-must-not-show";

/** Starts a fake service on loopback, and returns its origin. */
export async function startFake(t: TestContext, answer: RequestListener): Promise<string> {
  const server = createServer(answer);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Serves answers as `answer` says, and returns a store that uses them and a record of all requests. */
export async function openFakeS3(
  t: TestContext,
  answer: (request: Seen, count: number) => Answer | string,
  more: Record<string, string> = {},
): Promise<{ store: ObjectStore; seen: Seen[]; ended: Seen[]; options: Record<string, string> }> {
  const seen: Seen[] = [];
  /** Requests that the client gave up. */
  const ended: Seen[] = [];
  const aws_endpoint = await startFake(t, async (request, response) => {
    const body = await bodyOf(request);
    if (body === undefined) return;
    const { method = "", url = "", headers } = request;
    const asked = { method, url, headers, body };
    seen.push(asked);
    const said = answer(asked, seen.length);
    if (said === "hang") return void response.on("close", () => ended.push(asked));
    if (said === "reset") return void request.socket.destroy();
    if (typeof said === "string") return void response.writeHead(200, { etag: '"tag"' }).end(said);
    const [status, code, added] = said;
    response.writeHead(status, { etag: '"tag"', ...added });
    response.end(code && `<Error><Code>${code}</Code><Message>said by the fake</Message></Error>`);
  });
  const options = {
    aws_endpoint,
    allow_http: "true",
    aws_access_key_id: "id",
    aws_secret_access_key: SECRET,
    timeout: "30s",
    client_max_retries: "1",
    ...more,
  };
  const { store } = await createS3Store("bucket", options);
  return { store, seen, ended, options };
}

/** An empty listing. */
export const NOTHING =
  "<ListBucketResult><IsTruncated>false</IsTruncated><KeyCount>0</KeyCount></ListBucketResult>";
