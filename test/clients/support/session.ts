import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** A client's session in which every call had the right result. */
export interface SessionResult {
  readonly client: string;
  readonly version: string;
  /** The calls whose result was checked. */
  readonly calls: number;
}

/** Where a run leaves the results of its sessions; `scripts/clients.ts` collects them. */
export const RESULTS_FOLDER = join(import.meta.dirname, "..", "..", "..", ".cache", "clients");

/** A session is worth its name from this number of calls on. */
const ORDINARY_CALLS = 40;

/**
 * Keeps the result of a session for the README's table.
 *
 * @throws AssertionError when a call did not pass, or when there were too few
 */
export function recordResult({ client, version, calls }: SessionResult, passed: number): void {
  assert.equal(passed, calls, `${client}: ${calls - passed} calls failed`);
  assert.ok(calls >= ORDINARY_CALLS, `${client}: only ${calls} calls`);
  mkdirSync(RESULTS_FOLDER, { recursive: true });
  const file = `${client.replaceAll(/[^\w.-]+/g, "-")}.json`;
  writeFileSync(join(RESULTS_FOLDER, file), JSON.stringify({ client, version, calls }));
}

/** Records the result that a client's program prints, on a line of its own, possibly with the codes that colour a terminal. */
export function recordPrinted(output: string): void {
  const printed = /\{[^{}]*"passed"[^{}]*\}/.exec(output)?.[0];
  assert.ok(printed, `no result in: ${output}`);
  const { passed, ...result } = JSON.parse(printed) as SessionResult & { readonly passed: number };
  recordResult(result, passed);
}

/** A session of a client in this process. */
export interface Session {
  /** Makes a call and checks its result; the session reports a failure and continues. */
  check(call: string, work: () => Promise<unknown>): Promise<void>;
  /** Records the result. */
  end(): void;
}

/** Begins a session; `tell` takes the failures. */
export function createSession(client: string, version: string, tell: (text: string) => void): Session {
  let [calls, passed] = [0, 0];
  return {
    async check(call, work) {
      calls++;
      try {
        await work();
        passed++;
      } catch (error) {
        tell(`${client}: ${call}: ${error}`);
      }
    },
    end: () => recordResult({ client, version, calls }, passed),
  };
}

/** Counts the calls of a library that tests use as its users do. */
export interface WatchedClient {
  /** Returns the object, and counts calls that return a promise, also those on the objects that it hands out. */
  watch<T extends object>(target: T): T;
  /** Number of calls so far. */
  calls(): number;
  /** Records the result. The session calls it after its tests have passed, so that every counted call has passed. */
  end(): void;
}

/** Begins to watch a client. */
export function watchClient(client: string, version: string): WatchedClient {
  let calls = 0;

  function watch<T extends object>(target: T): T {
    return new Proxy(target, {
      get(_, name) {
        const member: unknown = Reflect.get(target, name, target);
        if (typeof member !== "function") return member;
        // The library's own objects must not meet a proxy as `this`: they have private members.
        return (...args: unknown[]) => handOut(member.apply(target, args));
      },
    });
  }

  function handOut(result: unknown): unknown {
    if (result instanceof Promise) {
      calls++;
      return result.then(handOut);
    }
    const isOwn = typeof result === "object" && result !== null && isOfLibrary(result);
    return isOwn ? watch(result) : result;
  }

  return { watch, calls: () => calls, end: () => recordResult({ client, version, calls }, calls) };
}

/** Whether an object has methods of its own that answer with promises: data has none. */
function isOfLibrary(value: object): boolean {
  return /^(Remote|Local)?(Connection|Table|Tags|Branches)$|Query|MergeInsert/.test(
    value.constructor?.name ?? "",
  );
}
