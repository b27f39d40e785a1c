import assert from "node:assert/strict";
import { chmod, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pino } from "pino";
import { expect, it, onTestFinished } from "vitest";
import { sourcesOf } from "../../../test/support/command-line.ts";
import { temporaryDirectory } from "../../../test/support/directory.ts";
import { loadConfiguration, warnOfWritableFiles } from "./load-configuration.ts";

it.skipIf(process.platform === "win32")(
  "warns of the files with keys, secrets and policies that everyone may write, with their modes",
  async () => {
    const { path: folder, remove } = await temporaryDirectory();
    onTestFinished(remove);
    const at = (...names: string[]) => join(folder, ...names);
    await mkdir(at("policies"));
    const modes: Readonly<Record<string, number>> = {
      "gateway.yaml": 0o600,
      "keys.json": 0o666,
      "cert.pem": 0o444,
      "key.pem": 0o622,
      "page.secret": 0o606,
      "policies/a.cedar": 0o646,
      "policies/b.cedar": 0o644,
      policies: 0o1777,
    };
    for (const [name, mode] of Object.entries(modes)) {
      if (name !== "policies") await writeFile(at(name), name === "gateway.yaml" ? "" : "x".repeat(32));
      await chmod(at(name), mode);
    }
    const { configuration } = await loadConfiguration(
      sourcesOf([
        ...["--config", at("gateway.yaml"), "--auth", "api-key", "--api-keys-file", at("keys.json")],
        ...["--tls-cert", at("cert.pem"), "--tls-key", at("key.pem"), "--tls-client-ca", at("missing.pem")],
        ...["--page-token-secret-file", at("page.secret"), "--policy-dir", at("policies")],
      ]),
      {},
    );
    const lines: Record<string, unknown>[] = [];
    const log = pino({ base: null }, { write: (line: string) => void lines.push(JSON.parse(line)) });
    await warnOfWritableFiles(configuration, log);
    const warned = Object.fromEntries(
      lines.map(({ file, mode }) => [String(file).slice(folder.length + 1), mode]),
    );
    assert.deepEqual(warned, {
      "keys.json": "0666",
      "key.pem": "0622",
      "page.secret": "0606",
      "policies/a.cedar": "0646",
      policies: "1777",
    });
    expect(lines[0]?.["msg"]).toBe("every user of this machine may write a file that the gateway trusts");
  },
);
