import { type Environment, environmentName, type OptionTable } from "./option-spec.ts";

/** Address of a Service, as Kubernetes writes it into the variable `<SERVICE>_PORT` of its containers. */
const ADDRESS = /^(?:tcp|udp|sctp):\/\/\S+:\d+$/;

/**
 * Whether a variable describes a Service of Kubernetes, or a linked container of Docker, instead of an option: for a Service
 * `lance-gateway`, every container of the namespace has `LANCE_GATEWAY_PORT=tcp://10.0.0.1:80`.
 */
export function isServiceLink(name: string, text: string): boolean {
  return name.endsWith("_PORT") && ADDRESS.test(text);
}

/** Returns the variables of options whose values describe a Service, and therefore have no effect. */
export function serviceLinks(options: OptionTable, environment: Environment): readonly string[] {
  return Object.values(options)
    .map(({ flag }) => environmentName(flag))
    .filter((name) => isServiceLink(name, environment[name] ?? ""));
}
