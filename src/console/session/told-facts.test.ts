import { expect, test } from "vitest";
import { catalogOf, inabilitiesOf, permissionsOf, storageOf, supports, versionOf } from "./told-facts.ts";

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

const GLUE = {
  context: {
    "header.x-lance-gateway-backend": "glue",
    "header.x-lance-gateway-unsupported": "dropTable, renameTable, batchCommitTables",
  },
};

test("an answer tells whose catalog it comes from, and what that cannot do", () => {
  expect(catalogOf(GLUE)).toBe("AWS Glue");
  expect(inabilitiesOf(GLUE)).toEqual(["drop tables with their files", "rename tables"]);
  expect([supports(GLUE, "renameTable"), supports(GLUE, "createTable")]).toEqual([false, true]);
});

test("the gateway's own catalog has no other name", () => {
  expect(catalogOf({ context: { "header.x-lance-gateway-backend": "dir" } })).toBeUndefined();
});

test("an answer that tells nothing leaves refusals to the gateway", () => {
  expect(catalogOf({ context: {} })).toBeUndefined();
  expect(inabilitiesOf({ context: {} })).toEqual([]);
});

test("an answer about a root tells where its data is, and the version of the gateway", () => {
  const context = {
    "header.x-lance-gateway-storage": "%2Fsrv%2FGr%C3%B6%C3%9Fe%201",
    "header.x-lance-gateway-version": "0.1.0",
  };
  expect([storageOf({ context }), versionOf({ context })]).toEqual(["/srv/Größe 1", "0.1.0"]);
  expect([storageOf(GLUE), versionOf(GLUE)]).toEqual([undefined, undefined]);
});
