import type { Logger } from "pino";
import type { Access, Authorizer } from "../../namespace/authorizer.ts";
import type { Principal } from "../../namespace/call/principal.ts";
import { LanceError } from "../../namespace/errors.ts";
import { createPace, ITEMS_PER_STEP } from "../../runtime/pace.ts";
import { createDecisionCache } from "./decision-cache.ts";
import { decisionsIn, inputOf } from "./question.ts";
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
