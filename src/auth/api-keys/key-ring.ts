import type { Logger } from "pino";
import type { Principal } from "../../namespace/call/principal.ts";
import { LanceError } from "../../namespace/errors.ts";
import { parseIdentifier } from "../../namespace/identifier.ts";
import { openFollowed, stampOfFiles } from "../../runtime/files/follow.ts";
import { ITEMS_PER_STEP, inSlices, type Steps } from "../../runtime/pace.ts";
import type { Way } from "../authenticator.ts";
import { digestIn, hasDigest, idOf, type KeyRecord, readKeyFile } from "./key-file.ts";

/** Reason why a key is refused. */
export type KeyRefusal = "unknown" | "expired";

/** The keys of a file. */
export interface KeyRing {
  /** Returns the record of a key, or the reason why it is refused. */
  find(text: string): KeyRecord | KeyRefusal;
  close(): void;
}

/** Options of {@link openKeyRing}. */
export interface KeyRingOptions {
  readonly path: string;
  readonly log: Logger;
  /** Interval between looks at the file, in milliseconds. Default: 1 s. */
  readonly intervalMs?: number;
}

/**
 * Reads a file of keys, and again when it changes. If the changed file cannot be read, the keys stay as they were, and the log says
 * why.
 *
 * @throws Error with a single line if the file cannot be read at first.
 */
export async function openKeyRing({ path, log, intervalMs }: KeyRingOptions): Promise<KeyRing> {
  let byId: ReadonlyMap<string, Key>;
  const { first, close } = await openFollowed({
    stamp: () => stampOfFiles([path]),
    read: async () => inSlices(indexOf(await readKeyFile(path))),
    take(changed) {
      byId = changed;
      log.info({ path, keys: byId.size }, "the API keys were read again");
    },
    failed(error) {
      log.error({ path, err: error }, "the API keys stay as they were, because their file cannot be read");
    },
    intervalMs,
  });
  byId = first;
  return {
    find(text) {
      const id = idOf(text);
      const key = id === undefined ? undefined : byId.get(id);
      if (key === undefined || !hasDigest(text, key.digest)) return "unknown";
      return key.expiresAt <= Date.now() ? "expired" : key.record;
    },
    close,
  };
}

/** A key in the form in which it is compared. */
interface Key {
  readonly record: KeyRecord;
  readonly digest: Buffer;
  /** In epoch milliseconds. */
  readonly expiresAt: number;
}

function* indexOf(records: readonly KeyRecord[]): Steps<ReadonlyMap<string, Key>> {
  const byId = new Map<string, Key>();
  for (const [index, record] of records.entries()) {
    if (index % ITEMS_PER_STEP === 0) yield;
    const { id, hash, expires } = record;
    const expiresAt = expires === undefined ? Number.POSITIVE_INFINITY : Date.parse(expires);
    byId.set(id, { record, digest: digestIn(hash), expiresAt });
  }
  return byId;
}

/** The scheme has no registered name; RFC 9110 wants one in every 401. */
const CHALLENGE = 'ApiKey realm="lance-gateway"';

const REASONS: Readonly<Record<KeyRefusal, string>> = {
  unknown: "the gateway does not know the API key",
  expired: "the API key has expired",
};

/** Proves callers by the keys of a file. */
export function proveByKeys(keys: KeyRing): Way {
  const principals = new WeakMap<KeyRecord, Principal>();

  /** Returns the same object for each call of a caller, so that others remember by it what they know of the caller. */
  function principalOf(record: KeyRecord): Principal {
    const known = principals.get(record);
    if (known !== undefined) return known;
    const { name, id: credentialId, role, groups = [] } = record;
    const scope = record.scope?.map((object) => parseIdentifier(object));
    const claims = {};
    const principal: Principal = {
      by: "api-key",
      name,
      credentialId,
      role,
      groups,
      claims,
      ...(scope && { scope }),
    };
    principals.set(record, principal);
    return principal;
  }

  return {
    needs: "an API key, in the header x-api-key or in the request's identity.api_key",
    challenge: CHALLENGE,
    isInMessage: true,
    ends: ["apiKey"],
    prove({ identity: { apiKey } }) {
      if (apiKey === undefined) return undefined;
      const found = keys.find(apiKey);
      if (typeof found === "string") {
        const headers = { "www-authenticate": CHALLENGE };
        throw new LanceError("Unauthenticated", REASONS[found], { headers });
      }
      return principalOf(found);
    },
    close: keys.close,
  };
}
