import type { Logger } from "pino";
import type { Configuration } from "../config/configuration.ts";
import type { ShownConfiguration, ShownValue } from "../config/explain.ts";
import { type Environment, UsageError } from "../config/option-spec.ts";
import { secretsOf } from "../config/secrets.ts";
import { watchedFiles } from "../config/watched-files.ts";
import { refuseStrangers } from "../gateway/exposure.ts";
import { planChanges } from "../gateway/plan-changes.ts";
import type { RunningGateway } from "../gateway/start-gateway.ts";
import { watchFiles } from "../namespace/watch-files.ts";
import type { LoadedConfiguration } from "./load-configuration.ts";

/** Options of {@link startReloads}. */
export interface ReloadOptions {
  readonly gateway: Pick<RunningGateway, "prepare">;
  /** The configuration that is in effect. */
  readonly first: LoadedConfiguration;
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
  /** Reads the configuration, and takes over changes; it logs mistakes, after which everything stays as it was. */
  reload(): Promise<void>;
  close(): void;
}

/** Reloads when the configuration file or a file with a secret changes, and when `reload` is called; once at a time. */
export function startReloads({ gateway, first, load, secrets, environment, log }: ReloadOptions): Reloads {
  let { configuration: running, shown } = first;
  let queue: Promise<void> = Promise.resolve();
  let isOver = false;
  let unwatch = watch();

  function watch(): () => void {
    return watchFiles(watchedFiles(running), reload);
  }
  async function read(): Promise<void> {
    if (isOver) return;
    try {
      await apply(await load());
    } catch (error) {
      const why = error instanceof UsageError ? { reason: error.message } : { err: error };
      log.error(why, "the configuration stays as it was");
    }
  }
  async function apply(wanted: LoadedConfiguration): Promise<void> {
    const { configuration, applied, pending } = planChanges(running, wanted.configuration);
    for (const option of pending)
      log.warn({ option }, "an option has changed that cannot change while the gateway runs");
    if (applied.length === 0) {
      if (pending.length === 0) log.info("the configuration has not changed");
      return;
    }
    await refuseStrangers(configuration.options);
    secrets.push(...secretsOf(configuration, environment));
    const change = await gateway.prepare(configuration);
    if (isOver) return change.abort();
    change.commit();
    adopt(configuration, keepShown(wanted.shown, pending));
    log.info({ options: applied }, "the configuration has changed");
  }
  function adopt(configuration: Configuration, now: ShownConfiguration): void {
    running = configuration;
    shown = now;
    unwatch();
    unwatch = watch();
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
  function reload(): Promise<void> {
    queue = queue.then(read);
    return queue;
  }
  return {
    get shown() {
      return shown;
    },
    reload,
    close() {
      isOver = true;
      unwatch();
    },
  };
}
