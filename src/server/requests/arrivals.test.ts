import { expect, test } from "vitest";
import { createFindClient } from "./arrivals.ts";

test("without trusted proxies the client is the peer, whatever its headers say", () => {
  const find = createFindClient([]);
  expect(find("192.0.2.1", { "x-forwarded-for": "203.0.113.9", forwarded: "for=203.0.113.9" })).toBe(
    "192.0.2.1",
  );
});

test("the client is the last address in front of the trusted proxies", () => {
  const find = createFindClient(["10.0.0.0/8", "2001:db8::/32", "127.0.0.1"]);
  const cases = [
    ["10.1.2.3", { "x-forwarded-for": "198.51.100.7" }, "198.51.100.7"],
    ["10.1.2.3", { "x-forwarded-for": "1.1.1.1, 198.51.100.7, 10.9.9.9" }, "198.51.100.7"],
    ["::ffff:10.1.2.3", { "x-forwarded-for": "198.51.100.7:4711" }, "198.51.100.7"],
    ["127.0.0.1", { "x-forwarded-for": "unknown, 10.0.0.1" }, "10.0.0.1"],
    ["127.0.0.1", { "x-forwarded-for": "10.0.0.2, 10.0.0.1" }, "10.0.0.2"],
    ["127.0.0.1", {}, "127.0.0.1"],
    ["198.51.100.7", { "x-forwarded-for": "203.0.113.9" }, "198.51.100.7"],
    [undefined, { "x-forwarded-for": "203.0.113.9" }, undefined],
  ] as const;
  for (const [peer, headers, client] of cases)
    expect(find(peer, headers), JSON.stringify(headers)).toBe(client);
});

test("proxies may write the header of RFC 7239 instead", () => {
  const find = createFindClient(["2001:db8::/32", "127.0.0.1", "10.0.0.1"], "forwarded");
  const cases = [
    ["2001:db8::1", { forwarded: 'for="[2001:db9::7]:4711";proto=https' }, "2001:db9::7"],
    ["127.0.0.1", { forwarded: "proto=https; For=198.51.100.7, for=10.0.0.1" }, "198.51.100.7"],
    ["127.0.0.1", { forwarded: "for=_hidden" }, "127.0.0.1"],
    ["127.0.0.1", {}, "127.0.0.1"],
  ] as const;
  for (const [peer, headers, client] of cases)
    expect(find(peer, headers), JSON.stringify(headers)).toBe(client);
});

test("the header that the proxies do not write does not count: a client can send it through them", () => {
  const headers = { "x-forwarded-for": "198.51.100.7", forwarded: "for=203.0.113.9" };
  expect(createFindClient(["127.0.0.1"])("127.0.0.1", headers)).toBe("198.51.100.7");
  expect(createFindClient(["127.0.0.1"], "forwarded")("127.0.0.1", headers)).toBe("203.0.113.9");
  expect(createFindClient(["127.0.0.1"])("127.0.0.1", { forwarded: "for=203.0.113.9" })).toBe("127.0.0.1");
});

test("callers of a Unix socket can be proxies, too", () => {
  expect(createFindClient(["unix"])(undefined, { "x-forwarded-for": "203.0.113.9" })).toBe("203.0.113.9");
});
