import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { drawKey } from "../../src/auth/api-keys/key-file.ts";
import { rolePolicies } from "../../src/auth/cedar/read-policies.ts";
import { temporaryDirectory } from "./directory.ts";
import { startProgram } from "./program.ts";

/** Roles of the callers of a secured gateway. */
const ROLES = ["owner", "reader"] as const;

/** A gateway that asks its callers who they are, decides by policies, counts their calls and writes everything down. */
export interface SecuredGateway {
  readonly port: number;
  /** Headers of a caller with each role. */
  readonly headers: Readonly<Record<(typeof ROLES)[number], { readonly "x-api-key": string }>>;
  /** Path of the directory with the tables. */
  readonly root: string;
  /** Path of the audit log. */
  readonly auditLog: string;
  close(): Promise<void>;
}

/**
 * Starts the program with keys, the policies of the roles, rate limits that tests do not reach, and a required audit log.
 *
 * @param options further options of the program
 */
export async function startSecuredGateway(...options: readonly string[]): Promise<SecuredGateway> {
  const { path: folder, remove } = await temporaryDirectory();
  const [root, policies, keysFile, auditLog] = ["root", "policies", "keys.json", "audit.jsonl"].map((name) =>
    join(folder, name),
  ) as [string, string, string, string];
  const keys = ROLES.map((role) => ({ role, ...drawKey() }));
  const created = new Date().toISOString();
  const records = keys.map(({ role, id, hash }) => ({ role, id, hash, created, name: `the ${role}` }));
  await mkdir(policies);
  await writeFile(join(policies, "roles.cedar"), rolePolicies());
  await writeFile(keysFile, JSON.stringify({ keys: records }));
  const limits = ["principal", "address", "total"].map((scope) => `--rate-limit=${scope}=100000`);
  const program = startProgram(
    ...["serve", "--port=0", `--root=${root}`, "--auth=api-key", `--api-keys-file=${keysFile}`],
    ...[`--policy-dir=${policies}`, ...limits, `--audit-log=${auditLog}`, "--audit-required"],
    ...options,
  );
  return {
    ...{ port: await program.listening(), root, auditLog },
    headers: Object.fromEntries(
      keys.map(({ role, text }) => [role, { "x-api-key": text }]),
    ) as unknown as SecuredGateway["headers"],
    async close() {
      program.child.kill("SIGTERM");
      await program.ended;
      await remove();
    },
  };
}
