import { expect, test } from "vitest";
import { addToHistory, clearHistory, completionNames, readHistory, tablesIn } from "./statements.ts";

function createStorage() {
  const texts = new Map<string, string>();
  return {
    getItem: (key: string) => texts.get(key) ?? null,
    setItem: (key: string, text: string) => void texts.set(key, text),
    removeItem: (key: string) => void texts.delete(key),
  };
}

test("a tab keeps its last statements, each once, the newest first", () => {
  const storage = createStorage();
  expect(readHistory(storage)).toEqual([]);
  for (let i = 0; i < 60; i++) addToHistory(storage, `SELECT ${i}`);
  expect(addToHistory(storage, "SELECT 40").slice(0, 2)).toEqual(["SELECT 40", "SELECT 59"]);
  expect(readHistory(storage)).toHaveLength(50);
  clearHistory(storage);
  expect(readHistory(storage)).toEqual([]);
});

test("what others have stored is not a statement", () => {
  const storage = createStorage();
  for (const text of ["{", "{}", '[1, "SELECT 1"]']) {
    storage.setItem("lance-gateway-sql", text);
    expect(readHistory(storage)).toEqual(text.startsWith("[") ? ["SELECT 1"] : []);
  }
});

const TABLES = [["people"], ["team", "people"], ["team", "orders"], ["team", "eu", "orders"]];

test("tables are completed below their namespaces, as statements name them", () => {
  const columns = new Map([["team/orders", ["id", "price"]]]);
  expect(completionNames(TABLES, columns)).toEqual({
    people: [],
    team: { people: [], orders: ["id", "price"] },
    team$eu: { orders: [] },
  });
});

test("the columns of tables are asked for once a statement has their names", () => {
  expect(tablesIn("SELECT * FROM Team.Orders", TABLES)).toEqual([
    ["team", "orders"],
    ["team", "eu", "orders"],
  ]);
});
