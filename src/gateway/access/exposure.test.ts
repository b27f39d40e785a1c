import assert from "node:assert/strict";
import { describe, it } from "vitest";
import { UsageError } from "../../config/option-spec.ts";
import { refuseStrangers, travelsInTheClear } from "./open-access.ts";

const open = { auth: [], insecure: false } as const;

describe("the address of an open gateway", () => {
  for (const host of ["127.0.0.1", "127.9.9.9", "::1", "localhost"]) {
    it(`may be ${host}`, () => refuseStrangers({ ...open, host }));
  }

  for (const host of ["0.0.0.0", "::", "192.0.2.1", "2001:db8::1", "::ffff:192.0.2.1"]) {
    it(`may be ${host} only with authentication or by choice`, async () => {
      await assert.rejects(refuseStrangers({ ...open, host }), (error) => {
        assert.ok(error instanceof UsageError);
        assert.match(error.message, /can be reached from other machines/);
        return true;
      });
      await refuseStrangers({ ...open, host, auth: ["api-key"] });
      await refuseStrangers({ ...open, host, insecure: true });
    });
  }

  it("may be a Unix socket", () => refuseStrangers({ ...open, host: "0.0.0.0", socketPath: "/run/a.sock" }));
});

describe("credentials", () => {
  it("travel in the clear between machines without TLS", async () => {
    assert.equal(await travelsInTheClear({ host: "0.0.0.0" }), true);
    assert.equal(await travelsInTheClear({ host: "0.0.0.0", tlsCert: "a.pem" }), false);
    assert.equal(await travelsInTheClear({ host: "127.0.0.1" }), false);
    assert.equal(await travelsInTheClear({ host: "0.0.0.0", socketPath: "/run/a.sock" }), false);
  });
});
