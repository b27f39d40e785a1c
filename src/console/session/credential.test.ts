import { expect, test } from "vitest";
import { gatewayAddress } from "./connection.ts";
import {
  headersOf,
  noteAccepted,
  type Session,
  storedSession,
  storeSession,
  takeExpired,
} from "./credential.ts";

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

test("a credential of an issuer is renewed once, if the gateway has accepted it before", () => {
  const kept = new Map<string, string>();
  const storage = {
    getItem: (key: string) => kept.get(key) ?? null,
    setItem: (key: string, value: string) => void kept.set(key, value),
    removeItem: (key: string) => void kept.delete(key),
  };
  const issuer = { issuer: "https://login.example", clientId: "console", scope: "openid" };
  const session: Session = { credential: { kind: "token", secret: "s", issuer } };
  expect(takeExpired(storage, session)).toBeUndefined();
  noteAccepted(storage, session);
  expect(takeExpired(storage, { credential: { kind: "token", secret: "other", issuer } })).toBeUndefined();
  expect(takeExpired(storage, session)).toEqual(issuer);
  expect(takeExpired(storage, session)).toBeUndefined();
  noteAccepted(storage, { credential: { kind: "token", secret: "t" } });
  expect(takeExpired(storage, { credential: { kind: "token", secret: "t" } })).toBeUndefined();
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
