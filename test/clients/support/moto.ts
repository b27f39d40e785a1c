import { spawn } from "node:child_process";
import { once } from "node:events";
import { dirname, join } from "node:path";
import { pythonInterpreter } from "../../../scripts/python-environment.ts";
import { freePort } from "../../support/free-port.ts";
import { type SessionGuard, startSessionGuard } from "./session-guard.ts";
import { untilListening } from "./store-servers.ts";

/** An account with STS and S3. */
export interface Account extends SessionGuard {
  /** How its owner reaches the storage, in the words of Lance. */
  readonly options: Readonly<Record<string, string>>;
}

/** The access key of the owner, whom no policy restricts. */
const OWNER = "AKIAOWNEROWNEROWNER0";

/**
 * Starts moto's server, with a bucket, behind a guard that enforces the policies and the ends of sessions.
 *
 * @param lifeMs life of the sessions, in milliseconds, whatever callers ask for
 */
export async function startAccount(bucket: string, lifeMs: number): Promise<Account> {
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
    const { ok } = await fetch(`http://127.0.0.1:${port}/${bucket}`, { method: "PUT" });
    if (!ok) throw new Error("the bucket was not made");
    const guard = await startSessionGuard({ target: `http://127.0.0.1:${port}`, owner: OWNER, lifeMs });
    const options = {
      aws_endpoint: guard.url,
      aws_region: "us-east-1",
      aws_access_key_id: OWNER,
      aws_secret_access_key: "not-a-real-secret",
      allow_http: "true",
    };
    return {
      ...guard,
      options,
      async close() {
        await guard.close();
        await stop();
      },
    };
  } catch (error) {
    await stop();
    throw error;
  }
}
