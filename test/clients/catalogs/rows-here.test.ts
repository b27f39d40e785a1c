import assert from "node:assert/strict";
import { CreateDatabaseCommand } from "@aws-sdk/client-glue";
import { pino } from "pino";
import { describe, it } from "vitest";
import { createGlueBackend } from "../../../src/backends/catalogs/glue/index.ts";
import { createLakekeeperBackend } from "../../../src/backends/catalogs/iceberg/index.ts";
import { createComposedBackend } from "../../../src/backends/composed/index.ts";
import { createRestBackend } from "../../../src/backends/rest/index.ts";
import type { Backend } from "../../../src/namespace/lance-namespace.ts";
import { createCaller } from "../../support/caller.ts";
import { startIcebergServer } from "../../support/catalogs/iceberg-server.ts";
import { startRowlessServer } from "../../support/catalogs/rowless-directory.ts";
import { S3_BUCKET, type S3Server, startS3Server } from "../../support/s3-server.ts";
import { startServer } from "../../support/server.ts";
import { startGlueAccount } from "../support/glue.ts";
import { runLanceDbSession } from "../support/lancedb-session.ts";

const log = pino({ level: "silent" });
const tableRoot = `s3://${S3_BUCKET}/tables`;

/** Life of the credentials, in milliseconds: those of one part of the session have ended in the next one. */
const LIFE_MS = 1_500;

/** Parts of the session, with a pause between them. */
const PARTS = 3;

/** Credentials for a bucket that refuses those of the past. */
function vendFor(bucket: S3Server) {
  const ends = new Map([[bucket.options["aws_access_key_id"], Number.POSITIVE_INFINITY]]);
  const used = new Set<string>();
  const endedJobs = new Set<string>();
  bucket.intercept = ({ kind, key: object, headers }, response) => {
    if (kind === "PUT" && object.includes(".lance-gateway/.jobs/done/")) endedJobs.add(object);
    const key = /Credential=([^/]+)\//.exec(headers.authorization ?? "")?.[1] ?? "";
    used.add(key);
    // Requests may have been on their way on a busy machine.
    if (Date.now() - LIFE_MS / 2 < (ends.get(key) ?? 0)) return false;
    response.writeHead(400).end("<Error><Code>ExpiredToken</Code><Message>expired</Message></Error>");
    return true;
  };
  return {
    used,
    /** The records of jobs that have ended. */
    endedJobs,
    next() {
      const [key, end] = [`key-${ends.size}`, Date.now() + LIFE_MS];
      ends.set(key, end);
      return { key, token: `token-${ends.size}`, end: String(end) };
    },
  };
}

type Vended = ReturnType<typeof vendFor>;

interface Opened {
  readonly catalog: Backend;
  close(): Promise<void>;
}

/** Catalogs, each with a way to its tables, and whether it renames and hands out credentials. */
const CATALOGS: readonly {
  readonly name: string;
  readonly renames: boolean;
  readonly vends: boolean;
  open(bucket: S3Server, vended: Vended): Promise<Opened>;
}[] = [
  {
    name: "AWS Glue (moto), with the gateway's own credentials for the bucket",
    renames: false,
    vends: false,
    async open() {
      const { endpoint, region, credentials, client, close } = await startGlueAccount();
      await client.send(new CreateDatabaseCommand({ DatabaseInput: { Name: "shop" } }));
      const place = { tableRoot, within: ["shop"] };
      const catalog = await createGlueBackend({
        endpoint,
        region,
        credentials,
        resilience: { log },
        ...place,
      });
      return { catalog, close };
    },
  },
  {
    name: "another gateway without rows",
    renames: true,
    vends: true,
    async open(bucket, vended) {
      const root = `s3://${S3_BUCKET}/tables`;
      const upstream = await startRowlessServer({ root, storageOptions: bucket.options }, (operations) => ({
        ...operations,
        async describeTable(request, call) {
          const answer = await operations.describeTable?.(request, call);
          if (answer === undefined) throw new Error("a directory describes tables");
          const { key, token, end } = vended.next();
          const secrets = { aws_access_key_id: key, aws_session_token: token, expires_at_millis: end };
          return { ...answer, storageOptions: { ...bucket.options, ...secrets } };
        },
      }));
      const catalog = await createRestBackend({
        uri: `http://127.0.0.1:${upstream.port}`,
        handsOut: "manage",
        log,
      });
      return { catalog, close: upstream.close };
    },
  },
  {
    name: "a simulation of Lakekeeper",
    renames: true,
    vends: true,
    async open(bucket, vended) {
      const server = await startIcebergServer("lakekeeper");
      server.before = () => {
        const { key, token, end } = vended.next();
        server.credentials = {
          "s3.access-key-id": key,
          "s3.secret-access-key": "not-a-real-secret",
          "s3.session-token": token,
          "s3.session-token-expires-at-ms": end,
          "s3.endpoint": `http://127.0.0.1:${bucket.port}`,
          "s3.region": "us-east-1",
          "s3.path-style-access": "true",
        };
        return undefined;
      };
      const { url: uri, warehouse, close } = server;
      const place = { tableRoot, within: ["shop"] };
      const whole = await createLakekeeperBackend({ uri, warehouse, log });
      await createCaller({ backend: whole, limits: { maxUploadBytes: 2 ** 20 } }).createNamespace({
        id: ["shop"],
      });
      await whole.close();
      return { catalog: await createLakekeeperBackend({ uri, warehouse, log, ...place }), close };
    },
  },
];

describe("LanceDB's remote client, with rows served here", () => {
  for (const { name, renames, vends, open } of CATALOGS) {
    it(`works on the tables of ${name}`, async ({ onTestFinished }) => {
      const bucket = await startS3Server();
      onTestFinished(bucket.close);
      const vended = vendFor(bucket);
      const { catalog, close } = await open(bucket, vended);
      onTestFinished(close);
      const access = vends ? {} : { allowedLocations: [tableRoot], storageOptionsOf: () => bucket.options };
      const server = await startServer(createComposedBackend(catalog, { log, ...access }));
      onTestFinished(server.close);
      const pauseMs = vends ? LIFE_MS : 0;
      const calls = await runLanceDbSession(`http://127.0.0.1:${server.port}`, { pauseMs, renames });
      assert.ok(calls >= 43, `only ${calls} calls`);
      assert.ok(vended.endedJobs.size >= 2, "indices are built by jobs, whose records are beside the data");
      if (vends) assert.ok(vended.used.size >= PARTS, `only ${vended.used.size} credentials`);
    });
  }
});
