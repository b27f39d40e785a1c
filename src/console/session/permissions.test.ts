import { expect, test } from "vitest";
import { permissionsOf } from "./permissions.ts";

test("an answer tells what the caller may do", () => {
  const told = permissionsOf({ context: { "header.x-lance-gateway-permissions": "list, describe" } });
  expect([...told]).toEqual(["list", "describe"]);
});

test("a caller without any permission may do nothing", () => {
  expect(permissionsOf({ context: { "header.x-lance-gateway-permissions": "" } }).has("list")).toBe(false);
});

test("an answer that tells nothing leaves refusals to the gateway", () => {
  expect(permissionsOf({ context: {} }).has("manage")).toBe(true);
});
