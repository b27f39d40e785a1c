import assert from "node:assert/strict";
import { test } from "vitest";
import { UsageError } from "../../config/option-spec.ts";
import type { ServeOptions } from "../../config/options/groups.ts";
import { readServeOptions } from "../../config/serve-options.ts";
import { clusterOf } from "./cluster-of.ts";

async function addressWith(options: Partial<ServeOptions>): Promise<string | undefined> {
  const ray = { jobEngine: "ray", rayAddresses: ["http://head:8265"] } as const;
  return (await clusterOf({ ...readServeOptions([]), ...ray, ...options }))?.gatewayUrl;
}

test("drivers get an address that the port answers at", async () => {
  assert.equal(await addressWith({ port: 2400 }), "http://127.0.0.1:2400");
  for (const host of ["0.0.0.0", "::", "127.0.0.1"])
    assert.equal(await addressWith({ port: 2400, host }), "http://127.0.0.1:2400", host);
  // Its address is ::1 on some machines.
  assert.equal(await addressWith({ port: 2400, host: "localhost" }), "http://localhost:2400");
  assert.equal(await addressWith({ port: 2400, host: "10.0.0.7" }), "http://10.0.0.7:2400");
  assert.equal(await addressWith({ port: 2400, host: "::1" }), "http://[::1]:2400");
});

test("a port whose address drivers cannot be given is refused without --ray-gateway-url", async () => {
  for (const [options, why] of [
    [{ port: 0 }, /--port 0/],
    [{ socketPath: "/run/gateway.sock" }, /--listen/],
    [{ tlsCert: "cert.pem", tlsKey: "key.pem" }, /--tls-cert/],
  ] as const) {
    await assert.rejects(addressWith(options), (error: Error) => {
      assert.ok(error instanceof UsageError);
      assert.match(error.message, why);
      assert.match(error.message, /--ray-gateway-url/);
      return true;
    });
    const rayGatewayUrl = "https://gateway:2333";
    assert.equal(await addressWith({ ...options, rayGatewayUrl }), rayGatewayUrl);
  }
});
