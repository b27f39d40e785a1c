import { EXPIRY_OPTION, expiryOf } from "../../namespace/credential-options.ts";
import type { StorageOptions } from "../dir/stores/storage-options.ts";
import type { CredentialsLeft } from "./kept-table.ts";

/** Options of a storage whose credentials expire, for one table and one caller. */
export interface RenewedOptions {
  /**
   * Returns options with credentials that are valid. If their time is nearly up, a running call asks for newer ones; all who wait share the answer.
   *
   * @throws the error of the renewal, if the credentials have expired
   */
  current(): Promise<StorageOptions>;
  /** Offers the options of a newer description, which count once those before should be renewed. */
  offer(options: StorageOptions): void;
  /**
   * Names a way to newer options while a call runs: the description as its caller.
   *
   * @returns ends it
   */
  addSource(renew: () => Promise<StorageOptions>): () => void;
  /** Returns what is left of the credentials, and why the last renewal failed. */
  left(): CredentialsLeft;
}

/**
 * Longest use of credentials, in milliseconds, however long they are valid: a right to write that the catalog takes away while it still
 * describes the table ends with it.
 */
const MAX_USE_MS = 15 * 60_000;

/** Longest time before the end of credentials at which newer ones are used, in milliseconds. */
const RENEW_BEFORE_MS = 5 * 60_000;

/** Share of their lifetime after which credentials that live for less are renewed. */
const RENEW_SHARE = 0.2;

/** Share of the time that is left after which a failed renewal is repeated. */
const RETRY_SHARE = 0.25;

/** Option by which the engine learns how long before the end it has to ask for newer credentials. */
const REFRESH_OPTION = "refresh_offset_millis";

/** Creates the options, which begin with those of a description. */
export function createRenewedOptions(first: StorageOptions): RenewedOptions {
  let held = hold(first);
  let renewing: Promise<void> | undefined;
  let failure: string | undefined;
  /** The newest one is the last. */
  const sources = new Set<() => Promise<StorageOptions>>();

  async function renew(source: () => Promise<StorageOptions>): Promise<void> {
    try {
      held = hold(await source());
      failure = undefined;
    } catch (error) {
      failure = error instanceof Error ? error.message : String(error);
      const now = Date.now();
      if (now >= held.ends) throw error;
      held = { ...held, renewAt: now + (held.ends - now) * RETRY_SHARE };
    }
  }
  return {
    async current() {
      const source = [...sources].at(-1);
      if (Date.now() >= held.renewAt && source !== undefined) {
        renewing ??= renew(source).finally(() => {
          renewing = undefined;
        });
        await renewing;
      }
      return held.options;
    },
    offer(options) {
      if (Date.now() >= held.renewAt) held = hold(options);
    },
    addSource(source) {
      // Equal functions of two calls are two sources.
      const own = () => source();
      sources.add(own);
      return () => void sources.delete(own);
    },
    left: () => ({ ends: held.ends, life: held.life, failure }),
  };
}

/** The end of the use of options, and the time from which they should be renewed, in epoch milliseconds. */
export interface OptionsLife {
  readonly ends: number;
  readonly renewAt: number;
}

/** Returns the life of options that have just arrived. */
export function lifeOf(options: StorageOptions): OptionsLife {
  const now = Date.now();
  const ends = Math.min(expiryOf(options) ?? Number.POSITIVE_INFINITY, now + MAX_USE_MS);
  return { ends, renewAt: ends - Math.min(RENEW_BEFORE_MS, Math.max(0, ends - now) * RENEW_SHARE) };
}

interface Held extends OptionsLife {
  /** How long they were valid when they arrived, in milliseconds. */
  readonly life: number;
  readonly options: StorageOptions;
}

function hold(options: StorageOptions): Held {
  const { ends, renewAt } = lifeOf(options);
  const times = { [EXPIRY_OPTION]: String(ends), [REFRESH_OPTION]: String(Math.ceil(ends - renewAt)) };
  return { options: { ...options, ...times }, ends, renewAt, life: ends - Date.now() };
}
