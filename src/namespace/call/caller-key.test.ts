import assert from "node:assert/strict";
import { describe, it } from "vitest";
import { addressKey } from "./caller-key.ts";

describe("the key of an address", () => {
  it("is the network of an IPv6 address, however it is written", () => {
    const same = ["2001:db8::1", "2001:db8::ffff:2", "2001:0db8:0:0:9:9:9:9", "2001:db8:0:0::"];
    assert.deepEqual([...new Set(same.map((peer) => addressKey({ peer })))], ["2001:db8:0:0"]);
    assert.notEqual(addressKey({ peer: "2001:db8:0:1::1" }), addressKey({ peer: "2001:db8::1" }));
    assert.equal(addressKey({ peer: "::1" }), "0:0:0:0");
    assert.equal(addressKey({ peer: "fe80::1%eth0" }), "fe80:0:0:0");
  });

  it("is an IPv4 address, also where it is mapped to IPv6", () => {
    for (const peer of ["192.0.2.7", "::ffff:192.0.2.7"]) assert.equal(addressKey({ peer }), "192.0.2.7");
    assert.equal(addressKey({}), "");
  });
});
