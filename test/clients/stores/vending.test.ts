import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, it } from "vitest";
import { type Program, startProgram } from "../../support/program.ts";
import { type Account, startAccount } from "../support/moto.ts";
import { runPython } from "../support/python.ts";

const BUCKET = "lake";
const ROLE = "arn:aws:iam::123456789012:role/tables";

describe("credentials of STS for tables in a bucket", () => {
  let account: Account;
  let folder: string;
  beforeAll(async () => {
    account = await startAccount(BUCKET, 4_000);
    folder = mkdtempSync(join(tmpdir(), "lance-gateway-vending-"));
  });
  afterAll(async () => {
    await account?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  async function createKey(file: string, name: string): Promise<string> {
    const { ended } = startProgram("keys", "create", "--file", file, "--name", name, "--role", name);
    const { code, stdout, stderr } = await ended;
    assert.equal(code, 0, stderr);
    return stdout.trim();
  }

  it("let pylance read and write with the gateway's address alone, past their expiry, and no further", async () => {
    const file = join(folder, "keys.json");
    const owner = await createKey(file, "owner");
    const writer = await createKey(file, "writer");
    const reader = await createKey(file, "reader");
    const storage = Object.entries(account.options).map(
      ([name, value]) => `--storage-option=${name}=${value}`,
    );
    const vending = ["--vend=aws-sts", `--vend-aws-role=${ROLE}`, `--vend-aws-endpoint=${account.url}`];
    const gateway: Program = startProgram(
      ...["serve", "--port=0", `--root=s3://${BUCKET}/catalog`, "--log-level=debug", "--vend-access=write"],
      ...["--auth=api-key", `--api-keys-file=${file}`, "--names=unicode"],
      ...[...storage, ...vending],
    );
    try {
      const address = `http://127.0.0.1:${await gateway.listening()}`;
      const secrets = JSON.parse(await runPython("vended.py", address, owner, writer, reader)) as string[];
      assert.ok(secrets.length > 4);
      gateway.child.kill("SIGTERM");
      const { code, stdout, stderr } = await gateway.ended;
      assert.equal(code, 0, stderr);
      for (const secret of secrets) assert.equal((stdout + stderr).includes(secret), false);
    } finally {
      gateway.child.kill("SIGTERM");
    }
  });
});
