import assert from "node:assert/strict";
import { pino } from "pino";
import { describe, it } from "vitest";
import { sourcesOf } from "../../test/support/command-line.ts";
import { UsageError } from "../config/option-spec.ts";
import { readServeOptions } from "../config/serve-options.ts";
import { openAuthenticator } from "./access/open-access.ts";
import { openTls } from "./open-tls.ts";

const log = pino({ level: "silent" });

/** Opens TLS and authentication for a command line. */
async function open(...args: readonly string[]) {
  const options = readServeOptions(sourcesOf(args));
  const tls = await openTls(options, log);
  tls?.close();
  return openAuthenticator(options, log);
}

describe("options of TLS", () => {
  it("turn nothing on by default", async () => {
    assert.equal(await open(), undefined);
  });

  for (const [args, pattern] of [
    [["--tls-cert", "a.pem"], /requires both --tls-cert and --tls-key/],
    [["--tls-key", "a.pem"], /requires both --tls-cert and --tls-key/],
    [["--tls-client-ca", "a.pem", "--auth", "mtls"], /requires both --tls-cert and --tls-key/],
    [["--tls-cert", "no.pem", "--tls-key", "no.pem"], /--tls-cert: no\.pem cannot be read: ENOENT/],
    [["--auth", "mtls"], /--auth mtls requires --tls-client-ca/],
    // The file of keys, which is not there, would be followed from then on.
    [["--auth", "api-key,mtls", "--api-keys-file", "no.yaml"], /--auth mtls requires --tls-client-ca/],
    [["--mtls-role", "writer=a"], /--mtls-role requires --auth mtls/],
    [["--mtls-role", "king=a"], /must be a role and a name/],
    [["--mtls-role", "writer"], /must be a role and a name/],
    [["--auth", "api-key,kerberos"], /--auth must be one of .*, not "kerberos"/],
    [["--listen", "/tmp/a.sock"], /--listen must be unix: and a path/],
    [["--listen", "unix://host/a"], /--listen must be unix: and a path/],
    [["--listen-mode", "rw"], /--listen-mode must be a mode in octal digits/],
  ] as const) {
    it(`refuse ${args.join(" ")}`, async () => {
      await assert.rejects(open(...args), (error) => {
        assert.ok(error instanceof UsageError, String(error));
        assert.match(error.message, pattern);
        assert.doesNotMatch(error.message, /\n/);
        return true;
      });
    });
  }

  it("take several ways of authentication at once, separated by commas or repeated", () => {
    const waysOf = (...args: string[]) => readServeOptions(sourcesOf(args)).auth;
    assert.deepEqual(waysOf("--auth", "api-key, mtls"), ["api-key", "mtls"]);
    assert.deepEqual(waysOf("--auth", "api-key", "--auth", "mtls,oidc"), ["api-key", "mtls", "oidc"]);
  });

  it("read names of certificates and modes", () => {
    const { mtlsRoles, socketMode, socketPath } = readServeOptions(
      sourcesOf([
        "--mtls-role",
        "writer=spiffe://a/b?c=d",
        "--listen-mode",
        "660",
        "--listen",
        "unix:/run/a",
      ]),
    );
    assert.deepEqual(mtlsRoles, [{ role: "writer", pattern: "spiffe://a/b?c=d" }]);
    assert.deepEqual([socketMode, socketPath], [0o660, "/run/a"]);
  });
});
