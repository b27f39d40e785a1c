import { describe, expect, it } from "vitest";
import { sourcesOf } from "../../test/support/command-line.ts";
import { serviceLinks } from "./layers.ts";
import { type Environment, UsageError } from "./option-spec.ts";
import { SERVE_OPTIONS } from "./options/groups.ts";
import { readServeOptions } from "./serve-options.ts";

/** The variables that Kubernetes makes for Services, each with its port 80. */
function variablesOf(...services: readonly string[]): Environment {
  const of = (name: string) => ({
    [`${name}_SERVICE_HOST`]: "10.0.0.1",
    [`${name}_SERVICE_PORT`]: "80",
    [`${name}_SERVICE_PORT_REST`]: "80",
    [`${name}_PORT`]: "tcp://10.0.0.1:80",
    [`${name}_PORT_80_TCP`]: "tcp://10.0.0.1:80",
    [`${name}_PORT_80_TCP_PROTO`]: "tcp",
    [`${name}_PORT_80_TCP_PORT`]: "80",
    [`${name}_PORT_80_TCP_ADDR`]: "10.0.0.1",
  });
  return Object.assign({}, ...services.map(of));
}

const SERVICES = variablesOf("LANCE_GATEWAY", "LANCE_GATEWAY_ADMIN");

describe("variables of Kubernetes for Services named like the gateway", () => {
  it("set no options", () => {
    expect(readServeOptions(sourcesOf([], SERVICES))).toEqual(readServeOptions(sourcesOf([], {})));
    const options = readServeOptions(sourcesOf(["--port", "1"], SERVICES));
    expect([options.port, options.adminPort]).toEqual([1, undefined]);
  });

  it("are told from others by the address in the variable of a port", () => {
    const PORT = "LANCE_GATEWAY_PORT";
    expect(serviceLinks(SERVE_OPTIONS, SERVICES)).toEqual([PORT, "LANCE_GATEWAY_ADMIN_PORT"]);
    expect(serviceLinks(SERVE_OPTIONS, { [PORT]: "udp://[fd00::1]:53" })).toEqual([PORT]);
    expect(serviceLinks(SERVE_OPTIONS, { [PORT]: "80", LANCE_GATEWAY_URI: "tcp://10.0.0.1:80" })).toEqual([]);
    for (const text of ["tcp://10.0.0.1", "tcp://", "http://10.0.0.1:80", "", "many"])
      expect(() => readServeOptions(sourcesOf([], { [PORT]: text }))).toThrow(UsageError);
  });
});
