import type { Logger } from "pino";
import type { Configuration } from "../../config/configuration.ts";
import type { ShownConfiguration, ShownValue } from "../../config/explain.ts";
import { type Environment, UsageError } from "../../config/option-spec.ts";
import { addSecrets } from "../../config/secrets.ts";
import { refuseStrangers } from "../../gateway/access/open-access.ts";
import { planChanges } from "../../gateway/reload/plan-changes.ts";
import type { RunningGateway } from "../../gateway/start-gateway.ts";
import { follow, stampOfFiles } from "../../runtime/files/follow.ts";
import { type LoadedConfiguration, warnOfWritableFiles, watchedFiles } from "./load-configuration.ts";

/** Options of {@link startReloads}. */
export interface ReloadOptions {
  readonly gateway: Pick<RunningGateway, "prepare" | "refresh">;
  /** The configuration that is in effect. */
  readonly first: LoadedConfiguration;
  /** Stamp of the files of `first`, from before anything opened by it. */
  readonly stamp: string;
  /** Returns a stamp of the files of a configuration. Default: {@link stampOfConfiguration}. */
  readonly stampOf?: typeof stampOfConfiguration;
  /** Reads the configuration again. */
  readonly load: () => Promise<LoadedConfiguration>;
  /** Secrets that the log masks; those of changed configurations are added. */
  readonly secrets: string[];
  readonly environment: Environment;
  readonly log: Logger;
}

/** Takes over changes of the configuration while the gateway runs. */
export interface Reloads {
  /** The configuration in effect, for operators. */
  readonly shown: ShownConfiguration;
  /**
   * Reads the configuration and the files that it names, and takes over changes; it logs mistakes, after which everything stays as it was. When
   * the log has its line, all workers serve by the changes.
   */
  reload(): Promise<void>;
  close(): void;
}

/** Returns a stamp of the configuration file and of the files with secrets. */
export function stampOfConfiguration(configuration: Configuration): Promise<string> {
  return stampOfFiles(watchedFiles(configuration));
}

/**
 * Reloads when the configuration file or a file with a secret changes, and when `reload` is called; once at a time. A change of the
 * files that cannot be taken over is tried again later: a database may be away, or the process short of file descriptors.
 */
export function startReloads(options: ReloadOptions): Reloads {
  const { gateway, first, stamp, stampOf = stampOfConfiguration, load, secrets, environment, log } = options;
  let { configuration: running, shown } = first;
  let queue: Promise<void> = Promise.resolve();
  let isOver = false;
  const following = follow(
    // The first part of a file may be a configuration by itself, without the rest's authentication or databases.
    { stamp: () => stampOf(running), read: inTurn, take: () => {}, failed, waitsForRest: true },
    stamp,
  );

  async function read(): Promise<void> {
    if (!isOver) await apply(await load());
  }
  function inTurn(): Promise<void> {
    const turn = queue.then(read);
    queue = turn.catch(() => {});
    return turn;
  }
  function failed(error: unknown): void {
    const why = error instanceof UsageError ? { reason: error.message } : { err: error };
    log.error(why, "the configuration stays as it was");
  }
  async function apply(wanted: LoadedConfiguration): Promise<void> {
    const { configuration, applied, pending } = planChanges(running, wanted.configuration);
    for (const option of pending)
      log.warn({ option }, "an option has changed that cannot change while the gateway runs");
    await warnOfWritableFiles(configuration, log);
    if (applied.length === 0) {
      await gateway.refresh();
      if (pending.length === 0) log.info("the configuration has not changed");
      return;
    }
    await refuseStrangers(configuration.options);
    addSecrets(secrets, configuration, environment);
    const change = await gateway.prepare(configuration);
    if (isOver) return change.abort();
    change.commit();
    adopt(configuration, keepShown(wanted.shown, pending));
    await gateway.refresh();
    log.info({ options: applied }, "the configuration has changed");
  }
  function adopt(configuration: Configuration, now: ShownConfiguration): void {
    running = configuration;
    shown = now;
  }
  /** Shows the options that have not changed as they were. */
  function keepShown(now: ShownConfiguration, pending: readonly string[]): ShownConfiguration {
    const options: Record<string, ShownValue> = { ...now.options };
    for (const key of pending) {
      const value = shown.options[key];
      if (value === undefined) delete options[key];
      else options[key] = value;
    }
    return pending.includes("databases") ? { ...shown, options } : { ...now, options };
  }
  return {
    get shown() {
      return shown;
    },
    reload: () => inTurn().catch(failed),
    close() {
      isOver = true;
      following.close();
    },
  };
}
