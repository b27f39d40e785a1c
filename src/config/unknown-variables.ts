import { nearest } from "./nearest.ts";
import { type Environment, environmentName } from "./option-spec.ts";
import { CLIENT_OPTIONS } from "./options/client.ts";
import { SERVE_OPTIONS } from "./options/groups.ts";

/** Returns a line for each variable that looks like that of an option and is none; those of Kubernetes' services do not. */
export function unknownVariables(environment: Environment): readonly string[] {
  const known = Object.values({ ...SERVE_OPTIONS, ...CLIENT_OPTIONS }).map(({ flag }) =>
    environmentName(flag),
  );
  const prefix = environmentName("");
  return Object.keys(environment).flatMap((name) => {
    if (!name.startsWith(prefix) || known.includes(name)) return [];
    const meant = nearest(
      name.slice(prefix.length),
      known.map((each) => each.slice(prefix.length)),
    );
    return meant === undefined
      ? []
      : [`${name} is unknown and has no effect; did you mean ${prefix}${meant}?`];
  });
}
