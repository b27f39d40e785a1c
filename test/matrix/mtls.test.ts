import assert from "node:assert/strict";
import { once } from "node:events";
import { request } from "node:https";
import { create } from "@bufbuild/protobuf";
import type { Transport } from "@connectrpc/connect";
import {
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
} from "@connectrpc/connect-node";
import { pino } from "pino";
import { afterAll, beforeAll, describe, it } from "vitest";
import { drawKey } from "../../src/auth/api-keys/key-file.ts";
import { proveByKeys } from "../../src/auth/api-keys/key-ring.ts";
import { proveByCertificates } from "../../src/auth/authenticate-by-certificate.ts";
import { createAuthenticator } from "../../src/auth/authenticator.ts";
import { openTls } from "../../src/gateway/open-tls.ts";
import { CreateNamespaceResponseSchema } from "../../src/gen/lance/namespace/v1/namespace_pb.ts";
import { makeTlsFiles } from "../fixtures/server/tls.ts";
import type { Certificate } from "../support/certificates.ts";
import { CallError } from "../support/client.ts";
import { clientOf } from "../support/connect-client.ts";
import { fakeBackend, startServer, type TestServer } from "../support/server.ts";

const key = drawKey();
const ring = {
  find(text: string) {
    if (text !== key.text) return "unknown";
    return {
      id: key.id,
      hash: "",
      name: "a reader",
      role: "reader",
      created: "2026-01-01T00:00:00.000Z",
    } as const;
  },
  close() {},
};

type Shown = (Certificate & { readonly ca: string }) | { readonly ca: string };
type Outcome = "allowed" | 401 | 403;
type Headers = Readonly<Record<string, string>>;

/** Creates a namespace over Connect's transports, which speak three protocols. */
function overRpc(open: (options: { baseUrl: string; httpVersion: "2"; nodeOptions: Shown }) => Transport) {
  return async (port: number, nodeOptions: Shown, headers: Headers): Promise<Outcome> => {
    const transport = open({ baseUrl: `https://127.0.0.1:${port}`, httpVersion: "2", nodeOptions });
    try {
      await clientOf(transport, undefined, headers).client.createNamespace({ id: ["a"] });
      return "allowed";
    } catch (error) {
      if (!(error instanceof CallError)) throw error;
      return error.failure.grpcCode === 16 ? 401 : 403;
    }
  };
}

const PROTOCOLS = {
  gRPC: overRpc(createGrpcTransport),
  "gRPC-Web": overRpc(createGrpcWebTransport),
  Connect: overRpc(createConnectTransport),
  async REST(port: number, shown: Shown, headers: Headers): Promise<Outcome> {
    const options = {
      method: "POST",
      agent: false,
      headers: { "content-type": "application/json", ...headers },
    };
    const url = `https://127.0.0.1:${port}/v1/namespace/a/create`;
    const [response] = await once(request(url, { ...options, ...shown }).end("{}"), "response");
    response.resume();
    return response.statusCode === 200 ? "allowed" : response.statusCode;
  },
} as const;

describe("callers with certificates", () => {
  let world: Awaited<ReturnType<typeof makeTlsFiles>>;
  let server: TestServer;
  const shown: Record<string, Shown> = {};
  beforeAll(async () => {
    await using strangers = await makeTlsFiles();
    world = await makeTlsFiles();
    const log = pino({ level: "silent" });
    const { certificate: tlsCert, key: tlsKey, clientAuthorities: tlsClientCa } = world.files;
    const tls = await openTls({ tlsCert, tlsKey, tlsClientCa }, log);
    const roles = [{ role: "owner", pattern: "spiffe://example.org/ns/etl/*" }] as const;
    const authenticator = createAuthenticator([proveByKeys(ring), proveByCertificates(roles)], {
      failed: () => 0,
    });
    const backend = fakeBackend({ createNamespace: async () => create(CreateNamespaceResponseSchema) });
    server = await startServer(backend, {}, { log, tls, authenticator });
    const named = (value: string) => ({ names: [{ kind: "URI", value }] }) as const;
    const [owner, other] = [named("spiffe://example.org/ns/etl/loader"), named("spiffe://example.org/ns/x")];
    const { ca } = world;
    Object.assign(shown, {
      nothing: { ca },
      "a certificate": { ca, ...(await world.sign(owner)) },
      "a certificate of another name": { ca, ...(await world.sign(other)) },
      "an expired certificate": {
        ca,
        ...(await world.sign({ ...owner, expires: new Date(Date.now() - 60_000) })),
      },
      "a certificate of a stranger's authority": { ca, ...(await strangers.sign(owner)) },
      "a certificate with a common name alone": {
        ca,
        ...(await world.sign({ commonName: "loader", names: [] })),
      },
    });
  });
  afterAll(async () => {
    await server.close();
    await world[Symbol.asyncDispose]();
  });

  for (const [what, headers, outcome] of [
    ["a certificate", {}, "allowed"],
    ["a certificate of another name", {}, 403],
    ["nothing", {}, 401],
    ["an expired certificate", {}, 401],
    ["a certificate of a stranger's authority", {}, 401],
    ["a certificate with a common name alone", {}, 401],
    // The key decides where there is one.
    ["a certificate", { "x-api-key": "lgw_wrong" }, 401],
    ["a certificate", { "x-api-key": key.text }, 403],
    // No header replaces a certificate.
    [
      "nothing",
      {
        "x-forwarded-client-cert": "URI=spiffe://example.org/ns/etl/loader",
        "x-ssl-client-verify": "SUCCESS",
      },
      401,
    ],
  ] as const) {
    const sent = Object.keys(headers).length === 0 ? "" : ` and ${JSON.stringify(headers)}`;
    it(`get ${outcome} with ${what}${sent} on every protocol`, async () => {
      for (const [protocol, call] of Object.entries(PROTOCOLS))
        assert.equal(await call(server.port, shown[what] as Shown, headers), outcome, protocol);
    });
  }

  it("need no certificate for probes", async () => {
    const url = `https://127.0.0.1:${server.port}/healthz`;
    const [response] = await once(request(url, { agent: false, ca: world.ca }).end(), "response");
    response.resume();
    assert.equal(response.statusCode, 200);
  });
});
