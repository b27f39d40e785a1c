import { expect, test } from "vitest";
import { addToHistory, clearHistory, readHistory } from "./statements.ts";

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
