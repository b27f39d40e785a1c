import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { BlobServiceClient } from "@azure/storage-blob";
import { npmTool } from "../../../scripts/npm-tool.ts";
import { freePort } from "../../support/free-port.ts";
import { ROOT, runTool } from "./tools.ts";

/** Where the servers are installed, each in a folder of its version. */
const CACHE = join(ROOT, ".cache", "stores");

/** The bucket that every server has. */
export const BUCKET = "lance";

/** A server of an object store, with an empty bucket. */
export interface StoreServer {
  readonly scheme: "s3" | "gs" | "az";
  readonly port: number;
  /** How the bucket is reached, in the words of Lance. */
  readonly options: Readonly<Record<string, string>>;
  close(): Promise<void>;
}

const S3 = ["github.com/versity/versitygw/cmd/versitygw", "v1.8.0"] as const;

/** Where {@link startS3} has its program, and the command that installs it, below this project's folder. */
export const S3_SERVER = {
  program: goPath(...S3).program,
  command: `GOBIN=$PWD/.cache/stores/versitygw-${S3[1]} go install ${S3.join("@")}`,
};

/** An S3 server that keeps objects as files and refuses, atomically, to create what is there. */
export async function startS3(): Promise<StoreServer> {
  const program = await goProgram(...S3);
  const [access, secret] = ["gateway-test", "not-a-real-secret"];
  return start("s3", async (port, directory) => {
    mkdirSync(join(directory, BUCKET));
    const keys = ["--access", access, "--secret", secret];
    // Without keep-alive, which S3 has, each request would open a connection.
    const flags = ["--port", `127.0.0.1:${port}`, "--keep-alive", "--quiet"];
    const child = run(program, [...keys, ...flags, "posix", directory]);
    const options = {
      aws_endpoint: `http://127.0.0.1:${port}`,
      aws_region: "us-east-1",
      aws_access_key_id: access,
      aws_secret_access_key: secret,
      allow_http: "true",
    };
    return { child, options };
  });
}

/** A server of the JSON API of Google Cloud Storage; it lacks the XML API, by which the engine writes. */
export async function startGcs(): Promise<StoreServer> {
  const program = await goProgram("github.com/fsouza/fake-gcs-server", "v1.56.1");
  const server = await start("gs", async (port) => {
    const url = `http://127.0.0.1:${port}`;
    const place = ["-scheme", "http", "-host", "127.0.0.1", "-port", String(port)];
    const names = ["-public-host", `127.0.0.1:${port}`, "-external-url", url];
    const child = run(program, [...place, ...names, "-backend", "memory", "-log-level", "error"]);
    const key = { client_email: "", private_key: "", private_key_id: "" };
    return {
      child,
      options: {
        google_service_account_key: JSON.stringify({ ...key, gcs_base_url: url, disable_oauth: true }),
      },
    };
  });
  const { ok } = await fetch(`http://127.0.0.1:${server.port}/storage/v1/b?project=test`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ name: BUCKET }),
  });
  if (!ok) throw new Error("the bucket was not made");
  return server;
}

/** Files of a certificate and its key. */
interface CertificateFiles {
  readonly cert: string;
  readonly key: string;
}

/**
 * The emulator of Azure Blob Storage.
 *
 * @param tls its certificate, which this process trusts; it then takes tokens of Microsoft Entra, too. Default: it speaks plain text.
 */
export async function startAzure(tls?: CertificateFiles): Promise<StoreServer> {
  const program = npmTool("azurite", ".bin/azurite-blob");
  const account = { name: "gatewaytest", key: Buffer.from("not a real key").toString("base64") };
  const oauth = tls === undefined ? [] : ["--oauth", "basic", "--cert", tls.cert, "--key", tls.key];
  const protocol = tls === undefined ? "http" : "https";
  const server = await start("az", async (port) => {
    const place = ["--blobHost", "127.0.0.1", "--blobPort", String(port), "--inMemoryPersistence"];
    const args = [...place, ...oauth, "--silent", "--skipApiVersionCheck", "--disableTelemetry"];
    const child = run(program, args, { AZURITE_ACCOUNTS: `${account.name}:${account.key}` });
    const options = {
      azure_storage_account_name: account.name,
      azure_storage_account_key: account.key,
      azure_storage_endpoint: `${protocol}://127.0.0.1:${port}/${account.name}`,
      ...(tls === undefined && { allow_http: "true" }),
    };
    return { child, options };
  });
  const settings = [
    `DefaultEndpointsProtocol=${protocol}`,
    `AccountName=${account.name}`,
    `AccountKey=${account.key}`,
    `BlobEndpoint=${protocol}://127.0.0.1:${server.port}/${account.name}`,
  ];
  await BlobServiceClient.fromConnectionString(settings.join(";")).createContainer(BUCKET);
  return server;
}

interface Started {
  readonly child: ChildProcess;
  readonly options: Readonly<Record<string, string>>;
}

async function start(
  scheme: StoreServer["scheme"],
  begin: (port: number, directory: string) => Promise<Started>,
): Promise<StoreServer> {
  const port = await freePort();
  const directory = mkdtempSync(join(tmpdir(), "lance-gateway-store-"));
  const { child, options } = await begin(port, directory);
  const close = async () => {
    if (child.exitCode === null && child.signalCode === null) {
      child.kill("SIGKILL");
      await once(child, "exit");
    }
    rmSync(directory, { recursive: true, force: true });
  };
  try {
    await untilListening(port, child);
  } catch (error) {
    await close();
    throw error;
  }
  return { scheme, port, options, close };
}

function run(program: string, args: readonly string[], env: Record<string, string> = {}): ChildProcess {
  return spawn(program, args, { stdio: ["ignore", "ignore", "inherit"], env: { ...process.env, ...env } });
}

/** Waits until a server listens. @throws Error if it ends first */
export async function untilListening(port: number, child: ChildProcess): Promise<void> {
  for (let tries = 0; tries < 1_000; tries++) {
    if (child.exitCode !== null) throw new Error(`the server ended with code ${child.exitCode}`);
    const socket = connect(port, "127.0.0.1");
    const open = await new Promise<boolean>((resolve) => {
      socket.once("connect", () => resolve(true));
      socket.once("error", () => resolve(false));
    });
    socket.destroy();
    if (open) return;
    await sleep(100);
  }
  throw new Error("the server does not listen");
}

/** A program of a Go module, which is built the first time. */
async function goProgram(module: string, version: string): Promise<string> {
  const { folder, program } = goPath(module, version);
  if (!existsSync(program))
    await runTool("go", ["install", `${module}@${version}`], { env: { GOBIN: folder } });
  return program;
}

function goPath(module: string, version: string): { folder: string; program: string } {
  const name = module.slice(module.lastIndexOf("/") + 1);
  const folder = join(CACHE, `${name}-${version}`);
  return { folder, program: join(folder, name) };
}
