import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import type { Access } from "../../namespace/authorizer.ts";
import type { Action, Principal } from "../../namespace/call/principal.ts";

/** An access as a policy sees it. */
export interface AskedAccess {
  readonly action: { readonly id: string; readonly kind: Action };
  readonly resource: {
    readonly type: string;
    readonly id: string;
    readonly name: string;
    readonly path: readonly string[];
    readonly database: string;
    readonly within: readonly string[];
  };
}

/** A question as a policy sees it. */
export interface Asked {
  readonly principal?: Pick<Principal, "by" | "name" | "role" | "groups" | "claims"> & {
    readonly id: string;
  };
  readonly accesses: readonly AskedAccess[];
}

/** A request as the server sees it. */
export interface AskedRequest {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly input: Asked;
}

/** Starts a server that speaks OPA's data API. @param answer answers a question. */
export async function startOpa(
  onTestFinished: (close: () => void) => void,
  answer: (response: ServerResponse, request: AskedRequest) => void,
) {
  const asked: AskedRequest[] = [];
  const server = createServer((request, response) => {
    void text(request).then((body) => {
      const { url: path = "", headers } = request;
      const each = { path, headers, input: (JSON.parse(body) as { input: Asked }).input };
      asked.push(each);
      answer(response, each);
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return { origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked };
}

/** Answers a question with the positions of what a function allows. */
export function allowing(allows: (access: AskedAccess, question: Asked) => boolean) {
  return (response: ServerResponse, { input }: AskedRequest): void => {
    const result = input.accesses.flatMap((access, index) => (allows(access, input) ? [index] : []));
    response.end(JSON.stringify({ result }));
  };
}

/** A caller. */
export const ann: Principal = {
  ...{ by: "oidc", name: "ann", credentialId: "c", role: "reader" },
  ...{ groups: ["data"], claims: { team: "blue" } },
};

/** Returns an access to a table. */
export function accessTo(...id: readonly string[]): Access {
  return { operation: "QueryTable", action: "read", object: { kind: "Table", database: undefined, id } };
}
