import { LanceError } from "../../../../namespace/errors.ts";
import { type Identifier, joinIdentifier } from "../../../../namespace/identifier.ts";
import { createSeal } from "../../../../runtime/seal.ts";
import type { ObjectStore } from "../../format/storage.ts";
import type { Homes, Placed, PlacedFiles } from "./placed-files.ts";

/** When a secret was created and changed, in milliseconds since 1970. */
interface SecretTimes {
  readonly createdAt: number;
  readonly updatedAt: number;
}

/** A secret in the storage. */
export interface StoredSecret extends SecretTimes, Placed {
  /** The value, sealed for this catalog and place, in base64. */
  readonly sealed: string;
}

/** Secrets as sealed objects in the storage of the catalog. A program that reads or writes the storage learns no value, and cannot exchange two. */
export interface SealedSecrets {
  /** Returns false if there is a secret of the name. @throws LanceError NamespaceNotFound */
  create(id: Identifier, value: string, now: number): Promise<boolean>;
  /** Returns false for a missing secret. */
  alter(id: Identifier, value: string, now: number): Promise<boolean>;
  describe(id: Identifier): Promise<SecretTimes | undefined>;
  /** Returns the value. @throws LanceError InvalidInput for one that another key has sealed, or that belongs to another catalog or name */
  open(id: Identifier): Promise<string | undefined>;
  /** Returns false for a missing secret. */
  remove(id: Identifier): Promise<boolean>;
  /** Returns the names of all secrets, from the root downwards. */
  list(): Promise<readonly Identifier[]>;
}

/** Key and purpose of the seal of secrets. */
export interface SecretSeal {
  /** Secret of which the key is made. */
  readonly key: string;
  /** The path or URI of the catalog's base. Catalogs may have the same key. */
  readonly catalog: string;
}

/** Opens secrets. It writes nothing before the first one. */
export function createSealedSecrets(
  store: ObjectStore,
  files: PlacedFiles<StoredSecret>,
  homes: Homes,
  { key, catalog }: SecretSeal,
): SealedSecrets {
  const seal = createSeal(key, "function secrets");
  const boundTo = ({ id, home }: Placed) => Buffer.from(JSON.stringify([catalog, home, ...id]));
  const encode = ({ id, home }: Placed, value: string, times: SecretTimes) => {
    const sealed = seal.seal(Buffer.from(value), boundTo({ id, home })).toString("base64");
    return Buffer.from(JSON.stringify({ id, home, ...times, sealed } satisfies StoredSecret));
  };

  return {
    async create(id, value, now) {
      const namespace = id.slice(0, -1);
      const place = { id, home: await homes.enter(namespace) };
      const bytes = encode(place, value, { createdAt: now, updatedAt: now });
      if (!(await store.putIfAbsent(files.keyOf(place), bytes))) return false;
      await homes.confirm(namespace, place.home);
      return true;
    },
    async alter(id, value, now) {
      const place = await files.placeOf(id);
      while (place !== undefined) {
        const key = files.keyOf(place);
        const found = await store.getTagged(key);
        if (found === undefined) break;
        const { createdAt } = files.parse(key, found.bytes);
        const bytes = encode(place, value, { createdAt, updatedAt: Math.max(now, createdAt + 1) });
        if (await store.replace(key, bytes, found.tag)) return true;
      }
      return false;
    },
    describe: (id) => files.read(id),
    async open(id) {
      const place = await files.placeOf(id);
      const found = place && (await files.read(id));
      if (found === undefined) return undefined;
      try {
        return seal.open(Buffer.from(found.sealed, "base64"), boundTo(place as Placed)).toString();
      } catch (cause) {
        const name = joinIdentifier(id);
        const text = `the secret ${name} cannot be opened: it was sealed with another key, for another catalog than ${catalog}, or for another name; set it again (alter_secret)`;
        throw new LanceError("InvalidInput", text, { cause });
      }
    },
    async remove(id) {
      const place = await files.placeOf(id);
      if (place === undefined || (await files.read(id)) === undefined) return false;
      return store.delete(files.keyOf(place));
    },
    async list() {
      return (await files.list()).map(({ id }) => id);
    },
  };
}
