import { spawn } from "node:child_process";
import { once } from "node:events";
import { dirname, join } from "node:path";
import { GlueClient } from "@aws-sdk/client-glue";
import { pythonInterpreter } from "../../../scripts/python-environment.ts";
import { freePort } from "../../support/free-port.ts";
import { untilListening } from "./store-servers.ts";

/** An account of AWS with a Glue catalog. */
export interface GlueAccount {
  readonly endpoint: string;
  readonly region: string;
  readonly credentials: { readonly accessKeyId: string; readonly secretAccessKey: string };
  /** A client past the gateway. */
  readonly client: GlueClient;
  close(): Promise<void>;
}

const REGION = "us-east-1";
const CREDENTIALS = { accessKeyId: "AKIAOWNEROWNEROWNER0", secretAccessKey: "not-a-real-secret" };

/** Starts moto's server, which has a Glue catalog. */
export async function startGlueAccount(): Promise<GlueAccount> {
  const program = join(dirname(pythonInterpreter("moto")), "moto_server");
  const port = await freePort();
  const child = spawn(program, ["-H", "127.0.0.1", "-p", String(port)], { stdio: "ignore" });
  const stop = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill("SIGKILL");
    await once(child, "exit");
  };
  try {
    await untilListening(port, child);
  } catch (error) {
    await stop();
    throw error;
  }
  const endpoint = `http://127.0.0.1:${port}`;
  const client = new GlueClient({ endpoint, region: REGION, credentials: CREDENTIALS });
  return {
    endpoint,
    region: REGION,
    credentials: CREDENTIALS,
    client,
    async close() {
      client.destroy();
      await stop();
    },
  };
}
