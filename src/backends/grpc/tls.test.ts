import assert from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { Server, ServerCredentials } from "@grpc/grpc-js";
import { pino } from "pino";
import { afterAll, beforeAll, describe, it } from "vitest";
import { beginCall } from "../../../test/support/caller.ts";
import { type Certificates, makeCertificates } from "../../../test/support/certificates.ts";
import { definitionOf } from "../../../test/support/grpc-client.ts";
import { LanceNamespaceService } from "../../gen/lance/namespace/v1/service_pb.ts";
import {
  DescribeTableRequestSchema,
  DescribeTableResponseSchema,
} from "../../gen/lance/namespace/v1/table_pb.ts";
import { isLanceError } from "../../namespace/errors.ts";
import type { LanceNamespace } from "../../namespace/lance-namespace.ts";
import type { ResolveHost } from "../resilience/followed-hosts.ts";
import type { UpstreamTls } from "../upstream-identity/identity.ts";
import { createGrpcBackend } from "./index.ts";

const log = pino({ level: "silent" });
const { describeTable } = LanceNamespaceService.method;

describe("TLS to a gRPC upstream", () => {
  let certificates: Certificates;
  let server: Server;
  let port: number;

  beforeAll(async () => {
    certificates = await makeCertificates();
    server = new Server();
    server.addService(
      { describeTable: definitionOf(describeTable) },
      { describeTable: (_: unknown, done: (error: null, answer: unknown) => void) => done(null, answer) },
    );
    const { ca, server: own } = certificates;
    const pair = { cert_chain: Buffer.from(own.cert), private_key: Buffer.from(own.key) };
    // The server accepts only clients with a certificate.
    const security = ServerCredentials.createSsl(Buffer.from(ca), [pair], true);
    port = await new Promise((resolve, reject) => {
      server.bindAsync("127.0.0.1:0", security, (error, bound) => (error ? reject(error) : resolve(bound)));
    });
  });
  afterAll(() => server.forceShutdown());

  const answer = create(DescribeTableResponseSchema, { table: "t" });

  async function describeWith(
    tls: UpstreamTls | undefined,
    host = "127.0.0.1",
    resolveHost?: ResolveHost,
  ): Promise<unknown> {
    const addresses = [`${host}:${port}`];
    const backend = await createGrpcBackend({ addresses, tls, connectMs: 2_000, resolveHost, log });
    // By then the name has been looked up.
    await new Promise(setImmediate);
    try {
      const request = create(DescribeTableRequestSchema, { id: ["t"] });
      const call = beginCall(describeTable);
      const operation = backend.operations.describeTable as LanceNamespace["describeTable"];
      return (await operation(request, call)).table;
    } finally {
      await backend.close();
    }
  }

  const isAway = (error: unknown) => isLanceError(error, "ServiceUnavailable");

  it("goes through with an authority and a certificate of its own", async () => {
    const { ca, client } = certificates;
    assert.equal(await describeWith({ ca, ...client }), "t");
    assert.equal(await describeWith({ ca, ...client, serverName: "localhost" }), "t");
  });

  it("asks each server of a name for the certificate of that name", async () => {
    const { ca, client } = certificates;
    const resolveHost = async () => ["127.0.0.1", "127.0.0.9"].map((address) => ({ address, family: 4 }));
    assert.equal(await describeWith({ ca, ...client }, "localhost", resolveHost), "t");
    await assert.rejects(describeWith({ ca, ...client }, "other.example.com", resolveHost), isAway);
  });

  it("refuses an upstream of an unknown authority, or of another name", async () => {
    const { ca, client } = certificates;
    await assert.rejects(describeWith({ ...client }), isAway);
    await assert.rejects(describeWith({ ca, ...client, serverName: "other.example.com" }), isAway);
  });

  it("is refused without a certificate, and without TLS", async () => {
    await assert.rejects(describeWith({ ca: certificates.ca }), isAway);
    await assert.rejects(describeWith(undefined), isAway);
  });
});
