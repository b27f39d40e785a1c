import { isDeepStrictEqual } from "node:util";
import type { Configuration, Databases } from "../../config/configuration.ts";
import { fileKey, type OptionSpec } from "../../config/option-spec.ts";
import { SERVE_OPTIONS, type ServeOptions } from "../../config/options/groups.ts";
import { BACKEND_OPTIONS, DATABASE_OPTIONS, isLive, SERVER_NAMES } from "./live-options.ts";

type Name = keyof ServeOptions;

/** A change of the configuration of a running gateway. */
export interface Plan {
  /** The configuration that is in effect then: the wanted one, except for options that cannot change. */
  readonly configuration: Configuration;
  /** Keys of options that change, with `databases.NAME` before those of databases. */
  readonly applied: readonly string[];
  /** Keys of options that differ and need a restart. */
  readonly pending: readonly string[];
}

/** Compares the configuration that is in effect with the one that is wanted. */
export function planChanges(running: Configuration, wanted: Configuration): Plan {
  const changed = comparing(running, wanted);
  const differing = changed(running.options, wanted.options, SERVER_NAMES);
  const pending: string[] = differing.filter((name) => !isLive(name)).map(keyOf);
  const applied = differing.filter(isLive).map(keyOf);
  const kept = Object.fromEntries(
    differing.filter((name) => !isLive(name)).map((name) => [name, running.options[name]]),
  );
  const options = { ...wanted.options, ...kept } as ServeOptions;
  const [before, after] = [running.databases, wanted.databases];
  if ((before === undefined) !== (after === undefined)) {
    pending.push("databases");
    const own = Object.fromEntries(DATABASE_OPTIONS.map((name) => [name, running.options[name]]));
    return {
      configuration: { options: { ...options, ...own }, databases: before, contents: wanted.contents },
      ...{ applied, pending },
    };
  }
  if (before === undefined || after === undefined) {
    applied.push(...changed(running.options, wanted.options, DATABASE_OPTIONS).map(keyOf));
  } else applied.push(...changesOf(before, after, changed));
  return { configuration: { options, databases: after, contents: wanted.contents }, applied, pending };
}

function changesOf(before: Databases, after: Databases, changed: typeof changedOptions): readonly string[] {
  const names = new Set([...before.byName.keys(), ...after.byName.keys()]);
  const changes = [...names].flatMap((name) => {
    const [old, own] = [before.byName.get(name), after.byName.get(name)];
    if (old === undefined || own === undefined) return [`databases.${name} (${own ? "added" : "removed"})`];
    return changed(old, own, DATABASE_OPTIONS).map((option) => `databases.${name}.${keyOf(option)}`);
  });
  const routing = ({ routes, pathPrefix }: Databases) => [routes, pathPrefix];
  return [
    ...changes,
    ...(isDeepStrictEqual(routing(before), routing(after)) ? [] : ["routes"]),
    ...(before.fallback === after.fallback ? [] : ["default-database"]),
  ];
}

/** Returns the options among the given ones whose values differ. */
export function changedOptions(
  before: ServeOptions,
  after: ServeOptions,
  names: readonly Name[],
): readonly Name[] {
  return names.filter((name) => !isDeepStrictEqual(before[name], after[name]));
}

/** Returns {@link changedOptions} of two configurations, for which options also differ whose files have other contents. */
export function comparing(
  { contents: old }: Configuration,
  { contents: now }: Configuration,
): typeof changedOptions {
  const isOtherFile = (name: Name, path: unknown) => {
    const { isFile }: OptionSpec = SERVE_OPTIONS[name];
    return isFile === true && typeof path === "string" && old?.get(path) !== now?.get(path);
  };
  return (before, after, names) =>
    names.filter((name) => !isDeepStrictEqual(before[name], after[name]) || isOtherFile(name, after[name]));
}

/** Whether a database is served by the same backend when the configuration changes. */
export function keepsBackend(before: Configuration, after: Configuration, name: string): boolean {
  const [old, own] = [optionsOf(before, name), optionsOf(after, name)];
  if (old === undefined || own === undefined) return false;
  return comparing(before, after)(old, own, BACKEND_OPTIONS).length === 0;
}

function optionsOf({ options, databases }: Configuration, name: string): ServeOptions | undefined {
  return databases === undefined ? options : databases.byName.get(name);
}

function keyOf(name: Name): string {
  return fileKey(SERVE_OPTIONS[name]);
}
