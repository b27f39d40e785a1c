import assert from "node:assert/strict";
import { describe, it } from "vitest";
import { createAddressGuard } from "./guarded-agent.ts";

describe("the guard of addresses", () => {
  it("refuses metadata services, link-local networks and addresses of no single host, in every form", () => {
    const { permits } = createAddressGuard();
    for (const address of [
      ...["169.254.169.254", "169.254.0.1", "100.100.100.200", "168.63.129.16", "192.0.0.192", "0.0.0.0"],
      ...[
        "255.255.255.255",
        "224.0.0.1",
        "::",
        "fe80::1",
        "febf::1",
        "ff02::1",
        "fd00:ec2::254",
        "fd20:ce::254",
      ],
      ...["::ffff:169.254.169.254", "::ffff:a9fe:a9fe", "64:ff9b::169.254.169.254", "2002:a9fe:a9fe::1"],
    ])
      assert.equal(permits(address), false, address);
  });

  it("permits other addresses, private ones and the machine itself among them", () => {
    const { permits } = createAddressGuard();
    for (const address of [
      "10.0.0.1",
      "127.0.0.1",
      "::1",
      "192.168.1.1",
      "93.184.216.34",
      "2001:db8::1",
      "fd00::1",
    ])
      assert.equal(permits(address), true, address);
  });

  it("permits what the operator names, and no more", () => {
    const { permits } = createAddressGuard([
      { address: "169.254.10.0", prefix: 24 },
      { address: "fe80::7", prefix: 128 },
    ]);
    assert.deepEqual(["169.254.10.9", "fe80::7", "169.254.169.254", "fe80::8"].map(permits), [
      true,
      true,
      false,
      false,
    ]);
  });
});
