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

describe("an option of names and values", () => {
  it.each([
    ["--storage-option", "aws_region=a", "AWS_REGION=b", "aws_region"],
    ["--client-storage-option", "aws_region=a", "aws_region=a", "aws_region"],
    ["--header", "x-tenant=a", "X-Tenant=b", "x-tenant"],
    ["--backend-option", "a=1", "a=2", "a"],
  ])("%s with two values for a name is refused", (flag, first, second, name) => {
    const read = () => readServeOptions(sourcesOf([flag, first, "--port", "1", flag, second], {}));
    expect(read).toThrow(new UsageError(`${flag} has more than one value for "${name}"`));
  });

  it("may come from the environment with several names", () => {
    const text = "aws_region=a, aws_endpoint=b";
    const { storageOptions } = readServeOptions(sourcesOf([], { LANCE_GATEWAY_STORAGE_OPTION: text }));
    expect(storageOptions).toEqual([
      ["aws_region", "a"],
      ["aws_endpoint", "b"],
    ]);
  });
});
