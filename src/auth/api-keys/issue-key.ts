import type { Role } from "../../namespace/call/roles.ts";
import { drawKey } from "./key.ts";
import { changeKeyFile, type KeyRecord } from "./key-file.ts";

/** The caller of a new key. */
export interface KeyChoice {
  readonly name: string;
  readonly role: Role;
  readonly groups: readonly string[];
  /** Objects that the key is restricted to; none for no restriction. */
  readonly scope: readonly string[];
  /** How long the key is accepted, in milliseconds. Default: without an end. */
  readonly lifetimeMs?: number | undefined;
}

/** What a file of keys has about a key, except for its hash. */
export type KeyFacts = Omit<KeyRecord, "hash">;

/** A key with the text that its caller sends, which nothing keeps. */
export interface IssuedKey {
  readonly text: string;
  readonly facts: KeyFacts;
}

/** Draws a key and adds it to a file. @throws Error as {@link changeKeyFile} does */
export async function issueKey(path: string, choice: KeyChoice): Promise<IssuedKey> {
  const { name, role, groups, scope, lifetimeMs } = choice;
  const { text, id, hash } = drawKey();
  const now = Date.now();
  const facts: KeyFacts = {
    ...{ id, name, role },
    ...(groups.length > 0 && { groups }),
    ...(scope.length > 0 && { scope }),
    created: new Date(now).toISOString(),
    ...(lifetimeMs !== undefined && { expires: new Date(now + lifetimeMs).toISOString() }),
  };
  await changeKeyFile(path, (keys) => [...keys, { ...facts, hash }]);
  return { text, facts };
}

/** Removes a key from a file; returns whether there was one. Otherwise the file stays as it is. @throws Error as {@link changeKeyFile} does */
export async function revokeKey(path: string, id: string): Promise<boolean> {
  let isKnown = false;
  await changeKeyFile(path, (keys) => {
    isKnown = keys.some((key) => key.id === id);
    return isKnown ? keys.filter((key) => key.id !== id) : undefined;
  });
  return isKnown;
}
