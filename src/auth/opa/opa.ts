import { hash } from "node:crypto";
import type { Logger } from "pino";
import { type Access, type Authorizer, ONLY_DATABASE } from "../../namespace/authorizer.ts";
import type { Principal } from "../../namespace/call/principal.ts";
import { LanceError } from "../../namespace/errors.ts";
import { createPace, ITEMS_PER_STEP } from "../../runtime/pace.ts";
import { keyOf, lineOf, userOf } from "../cedar/schema.ts";
import { CircuitOpenError, type OpaServer } from "./server.ts";

/** Options of {@link createOpaAuthorizer}. */
export interface OpaAuthorizerOptions {
  readonly server: OpaServer;
  /** How long a decision counts, in milliseconds. */
  readonly maxAgeMs: number;
  readonly log: Logger;
}

/**
 * Most accesses in a question, and most characters of their names, which each access repeats for all that contains its object. A caller
 * that asks about long names deep down must not make the server too slow for its time, because the others would be refused, too.
 */
const [MAX_ACCESSES, MAX_CHARACTERS] = [2_000, 512 * 1024];

/** Shortest time between warnings that the rule has no value, in milliseconds. */
const WARNING_MS = 60_000;

/**
 * Creates an authorizer that asks a server about all accesses of a call at once. While the server cannot be asked, calls fail
 * with ServiceUnavailable: nobody knows whether they are allowed, and they may be repeated.
 */
export function createOpaAuthorizer({ server, maxAgeMs, log }: OpaAuthorizerOptions): Authorizer {
  const cache = createDecisionCache(maxAgeMs);
  let isFailing = false;
  let warnedAt = Number.NEGATIVE_INFINITY;

  async function ask(principal: Principal, accesses: readonly Access[]): Promise<readonly boolean[]> {
    try {
      const result = await server.ask(inputOf(principal, accesses));
      if (result === undefined) warnOfNothing();
      const decisions = decisionsIn(result, accesses.length);
      if (isFailing) log.warn("the policy server answers again");
      isFailing = false;
      return decisions;
    } catch (cause) {
      if (!isFailing && !(cause instanceof CircuitOpenError))
        log.error({ err: cause }, "the policy server cannot be asked");
      isFailing = true;
      const message = "permissions cannot be checked now, because the policy server cannot be asked";
      throw new LanceError("ServiceUnavailable", message, { cause, headers: { "retry-after": "1" } });
    }
  }

  function warnOfNothing(): void {
    if (performance.now() - warnedAt < WARNING_MS) return;
    warnedAt = performance.now();
    log.warn("the rule of --opa-url has no value, so that everything is refused");
  }

  async function allowsEach(principal: Principal, accesses: readonly Access[]): Promise<readonly boolean[]> {
    const pace = createPace();
    const decisions: (boolean | undefined)[] = [];
    const open: number[] = [];
    for (const [index, access] of accesses.entries()) {
      // A listing may have 100,000 entries.
      if (index % ITEMS_PER_STEP === 0) await pace.pauseIfDue();
      const known = cache.find(principal, access);
      decisions.push(known);
      if (known === undefined) open.push(index);
    }
    for (const part of questionsOf(open, accesses)) {
      const asked = part.map((index) => accesses[index] as Access);
      const answers = await ask(principal, asked);
      for (const [place, index] of part.entries()) {
        const allowed = answers[place] === true;
        decisions[index] = allowed;
        cache.remember(principal, asked[place] as Access, allowed);
      }
    }
    return decisions as boolean[];
  }

  return {
    allowsEach,
    async allows(principal, access) {
      const known = cache.find(principal, access);
      return known ?? (await allowsEach(principal, [access]))[0] === true;
    },
    close: () => server.close(),
  };
}

/** Splits accesses, given by their places, into those of each question. */
function* questionsOf(places: readonly number[], accesses: readonly Access[]): Iterable<readonly number[]> {
  let part: number[] = [];
  let characters = 0;
  for (const place of places) {
    const more = charactersOf(accesses[place] as Access);
    if (part.length > 0 && (part.length === MAX_ACCESSES || characters + more > MAX_CHARACTERS)) {
      yield part;
      [part, characters] = [[], 0];
    }
    part.push(place);
    characters += more;
  }
  if (part.length > 0) yield part;
}

/** Returns about how many characters of names the question about an access has. */
function charactersOf({ object: { id } }: Access): number {
  return id.reduce((sum, name) => sum + name.length + 1, 0) * (id.length + 2);
}

/** Returns the input of a question: a caller, and everything that it wants to do. The names are those of Cedar's entities. */
export function inputOf(principal: Principal, accesses: readonly Access[]): object {
  const { by, name, role, groups, claims } = principal;
  return {
    principal: { id: userOf(principal).id, by, name, role, groups, claims },
    accesses: accesses.map(accessOf),
  };
}

function accessOf({ operation, action, object }: Access): object {
  const line = lineOf(object);
  const database = object.database ?? ONLY_DATABASE;
  return {
    action: { id: operation, kind: action },
    resource: {
      ...line[0],
      name: object.id.at(-1) ?? database,
      path: object.id,
      database,
      // As with Cedar's `in`, an object is within itself.
      within: line.map(keyOf),
    },
  };
}

/**
 * Returns whether each access of a question is allowed: the result names the positions of those that are. No result at all allows
 * nothing.
 *
 * @throws Error for a result that names anything else.
 */
export function decisionsIn(result: unknown, count: number): boolean[] {
  const decisions = new Array<boolean>(count).fill(false);
  if (result === undefined) return decisions;
  if (!Array.isArray(result)) throw new Error("the result is not a list of positions");
  for (const position of result) {
    if (!Number.isInteger(position) || position < 0 || position >= count)
      throw new Error(
        `the result has ${JSON.stringify(position)}, which is not a position of input.accesses`,
      );
    decisions[position] = true;
  }
  return decisions;
}

/** Decisions of the last moments. */
export interface DecisionCache {
  /** Returns the decision about an access; undefined if there is none, or it is too old. */
  find(principal: Principal, access: Access): boolean | undefined;
  remember(principal: Principal, access: Access, allowed: boolean): void;
}

/** Maximum number of decisions that are remembered. */
const MAX_REMEMBERED = 100_000;

/** Creates an empty cache. @param maxAgeMs 0 remembers nothing. */
export function createDecisionCache(maxAgeMs: number): DecisionCache {
  const decisions = new Map<string, { readonly allowed: boolean; readonly until: number }>();
  const callers = new WeakMap<Principal, string>();

  /** Two principals with the same facts are the same caller. Each decision keeps the hash, and claims may be long. */
  function callerOf(principal: Principal): string {
    const known = callers.get(principal);
    if (known !== undefined) return known;
    const { by, name, role, groups, claims } = principal;
    const caller = hash("sha256", JSON.stringify([by, name, role, groups, claims]), "base64");
    callers.set(principal, caller);
    return caller;
  }

  function placeOf(principal: Principal, { operation, object }: Access): string {
    const [own] = lineOf(object);
    // A database may have the name of a namespace, and callers may ask about names with any character.
    return JSON.stringify([callerOf(principal), operation, object.database ?? "", own && keyOf(own)]);
  }

  return {
    find(principal, access) {
      if (maxAgeMs === 0) return undefined;
      const found = decisions.get(placeOf(principal, access));
      return found !== undefined && performance.now() < found.until ? found.allowed : undefined;
    },
    remember(principal, access, allowed) {
      if (maxAgeMs === 0) return;
      if (decisions.size >= MAX_REMEMBERED) decisions.clear();
      decisions.set(placeOf(principal, access), { allowed, until: performance.now() + maxAgeMs });
    },
  };
}
