import type { Identifier } from "../../../../namespace/identifier.ts";
import { createSeal } from "../../../../runtime/seal.ts";
import { forEachOf } from "../../concurrency/for-each.ts";
import { damagedFile, parseJsonFile } from "../../format/files/damaged-file.ts";
import { keyIn, listNames, type ObjectStore } from "../../format/storage.ts";
import { createFunctionRecords, type FunctionRecords, keyOfName } from "./records.ts";
import { createRowErrors, type RowErrors } from "./row-errors.ts";

/** How functions are kept. */
export interface FunctionsKey {
  /** Secret of which the key of the secrets is made. Default: no secrets are kept. */
  readonly key?: string | undefined;
}

/** Functions, secrets and failed rows that a catalog keeps. */
export interface StoredFunctions {
  readonly records: FunctionRecords;
  readonly secrets: SealedSecrets | undefined;
  readonly errors: RowErrors;
}

/** Directory of functions in the base of a catalog; implementations of the public format ignore it. */
const FUNCTIONS_DIRECTORY = ".functions";

/** Opens what a catalog keeps about functions, beside its tables. It writes nothing before the first function. */
export function openFunctions(store: ObjectStore, base: string, { key }: FunctionsKey): StoredFunctions {
  const directory = keyIn(base, FUNCTIONS_DIRECTORY);
  return {
    records: createFunctionRecords(store, directory),
    secrets: key === undefined ? undefined : createSealedSecrets(store, keyIn(directory, "secrets"), key),
    errors: createRowErrors(store, keyIn(directory, "errors")),
  };
}

/** When a secret was created and changed, in milliseconds since 1970. */
interface SecretTimes {
  readonly createdAt: number;
  readonly updatedAt: number;
}

interface StoredSecret extends SecretTimes {
  readonly id: Identifier;
  /** The value, sealed for this name, in base64. */
  readonly sealed: string;
}

/** Secrets as sealed objects in the storage of the catalog. A program that reads or writes the storage learns no value, and cannot exchange two. */
interface SealedSecrets {
  /** Returns false if there is a secret of the name. */
  create(id: Identifier, value: string, now: number): Promise<boolean>;
  /** Returns false for a missing secret. */
  alter(id: Identifier, value: string, now: number): Promise<boolean>;
  describe(id: Identifier): Promise<SecretTimes | undefined>;
  /** Returns the value. @throws LanceError DataLoss for one that another key has sealed, or another name */
  open(id: Identifier): Promise<string | undefined>;
  /** Returns false for a missing secret. */
  remove(id: Identifier): Promise<boolean>;
  /** Returns the names of all secrets, from the root downwards. */
  list(): Promise<readonly Identifier[]>;
}

/** Number of records that are read at a time. */
const READS = 16;

/** Opens the secrets in a directory, given as an object key. It writes nothing before the first secret. */
function createSealedSecrets(store: ObjectStore, directory: string, key: string): SealedSecrets {
  const seal = createSeal(key, "function secrets");
  const keyOf = (id: Identifier) => keyIn(directory, keyOfName(id));
  const boundTo = (id: Identifier) => Buffer.from(JSON.stringify(id));
  const encode = (id: Identifier, value: string, times: SecretTimes) => {
    const sealed = seal.seal(Buffer.from(value), boundTo(id)).toString("base64");
    return Buffer.from(JSON.stringify({ id, ...times, sealed } satisfies StoredSecret));
  };
  const decode = (place: string, bytes: Uint8Array) => parseJsonFile(place, bytes) as unknown as StoredSecret;
  async function read(id: Identifier): Promise<StoredSecret | undefined> {
    const bytes = await store.get(keyOf(id));
    return bytes && decode(keyOf(id), bytes);
  }

  return {
    create: (id, value, now) =>
      store.putIfAbsent(keyOf(id), encode(id, value, { createdAt: now, updatedAt: now })),
    async alter(id, value, now) {
      for (;;) {
        const found = await store.getTagged(keyOf(id));
        if (found === undefined) return false;
        const { createdAt } = decode(keyOf(id), found.bytes);
        const bytes = encode(id, value, { createdAt, updatedAt: Math.max(now, createdAt + 1) });
        if (await store.replace(keyOf(id), bytes, found.tag)) return true;
      }
    },
    describe: read,
    async open(id) {
      const found = await read(id);
      if (found === undefined) return undefined;
      try {
        return seal.open(Buffer.from(found.sealed, "base64"), boundTo(id)).toString();
      } catch (error) {
        throw damagedFile(keyOf(id), "was sealed with another key or for another secret", error);
      }
    },
    async remove(id) {
      return (await read(id)) !== undefined && store.delete(keyOf(id));
    },
    async list() {
      const found: Identifier[] = [];
      await forEachOf(await listNames(store, directory), READS, async (name) => {
        const place = keyIn(directory, name);
        const bytes = await store.get(place);
        if (bytes !== undefined) found.push(decode(place, bytes).id);
      });
      return found;
    },
  };
}
