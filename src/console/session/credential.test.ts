import { expect, test } from "vitest";
import { gatewayAddress } from "./connection.ts";
import { headersOf, storedSession, storeSession } from "./credential.ts";

test("a session is kept and found again", () => {
  const kept = new Map<string, string>();
  const storage = {
    getItem: (key: string) => kept.get(key) ?? null,
    setItem: (key: string, value: string) => void kept.set(key, value),
  };
  expect(storedSession(storage)).toEqual({});
  storeSession(storage, { database: "sales", credential: { kind: "token", secret: "s" } });
  expect(headersOf(storedSession(storage))).toEqual({
    authorization: "Bearer s",
    "x-service-database": "sales",
  });
});

test("a damaged session counts as none", () => {
  expect(storedSession({ getItem: () => "{" })).toEqual({});
});

test("an API key goes into the header for keys", () => {
  expect(headersOf({ credential: { kind: "api-key", secret: "k" } })).toEqual({ "x-api-key": "k" });
});

test("the gateway is at the address above the console, also below the path of a database", () => {
  expect(gatewayAddress("http://localhost:2333/console/#/t/a")).toBe("http://localhost:2333");
  expect(gatewayAddress("https://x.example/db/sales/console/")).toBe("https://x.example/db/sales");
});
