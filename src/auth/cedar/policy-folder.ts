import type { Logger } from "pino";
import type { Authorizer } from "../../namespace/authorizer.ts";
import { LanceError } from "../../namespace/errors.ts";
import { openFollowed, stampOfFiles } from "../../runtime/files/follow.ts";
import { createDecider } from "./decide.ts";
import { policyFiles, readPolicies } from "./read-policies.ts";
import { loadCedar } from "./schema.ts";

/** Options of {@link openPolicyFolder}. */
export interface PolicyFolderOptions {
  readonly directory: string;
  readonly log: Logger;
  /** Interval between looks at the directory, in milliseconds. Default: 1 s. */
  readonly intervalMs?: number;
}

/**
 * Opens a directory of policies, which alone decide then. It is read again when it changes; if it is wrong, the policies stay as
 * they were, and the log says why.
 *
 * @throws Error that says what is wrong, in a line for each mistake.
 */
export async function openPolicyFolder({
  directory,
  log,
  intervalMs,
}: PolicyFolderOptions): Promise<Authorizer> {
  const cedar = await loadCedar();
  const failed = (errors: readonly string[]) =>
    log.warn({ directory, errors }, "a policy failed, so that the access is refused");

  async function read() {
    const policies = await readPolicies(cedar, directory);
    return { policies, decider: createDecider(cedar, policies, failed) };
  }

  let current: Awaited<ReturnType<typeof read>>;
  const { first, close } = await openFollowed({
    stamp: () => stampOf(directory),
    // Nobody writes a directory any more that has not changed since the last look.
    waitsForRest: true,
    read,
    take(changed) {
      current = changed;
      log.info({ directory, policies: changed.policies.length }, "the policies were read again");
    },
    failed(error) {
      log.error({ directory, err: error }, "the policies stay as they were, because the new ones are wrong");
    },
    intervalMs,
  });
  current = first;

  /** Makes a decision that failed a refusal; an error of looking up properties is that of the call. */
  function refuse(error: unknown): false {
    if (error instanceof LanceError) throw error;
    log.error({ err: error }, "the policies cannot be evaluated, so that the access is refused");
    return false;
  }

  return {
    allows(principal, access) {
      try {
        const answer = current.decider.allows(principal, access);
        return typeof answer === "boolean" ? answer : answer.catch(refuse);
      } catch (error) {
        return refuse(error);
      }
    },
    allowsSiblings(principal, access) {
      try {
        return current.decider.allowsSiblings(principal, access);
      } catch {
        // The decisions about single objects fail, too, and say why.
        return undefined;
      }
    },
    async explain(principal, access) {
      const { decider } = current;
      return decider.explain(principal, access, await access.properties?.());
    },
    rules: () => current.policies.map(({ name, text }) => ({ name, text })),
    close,
  };
}

/** Returns a text that changes when the files of a directory do. */
async function stampOf(directory: string): Promise<string> {
  try {
    return await stampOfFiles(await policyFiles(directory));
  } catch (error) {
    return String(error);
  }
}
