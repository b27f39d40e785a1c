import { join } from "node:path";
import { afterAll, beforeAll, describe, it } from "vitest";
import { writeArrowFiles } from "./support/arrow-files.ts";
import { type GatewayProcess, startGateway } from "./support/gateway.ts";
import { runPython } from "./support/python.ts";
import { recordPrinted } from "./support/session.ts";
import { runSession, runTool } from "./support/tools.ts";

describe("the Java client", () => {
  let gateway: GatewayProcess;
  beforeAll(async () => {
    gateway = await startGateway();
  });
  afterAll(() => gateway.close());

  it("has an ordinary session", async () => {
    const values = [`-Duri=${gateway.uri}`, `-Drows=${writeArrowFiles()}`];
    const pom = join(import.meta.dirname, "java", "pom.xml");
    recordPrinted(await runSession("mvn", ["-q", "-B", "-f", pom, "compile", "exec:java", ...values]));
  });
});

describe("Arrow's JDBC driver for Flight SQL", () => {
  let gateway: GatewayProcess;
  beforeAll(async () => {
    gateway = await startGateway();
  });
  afterAll(() => gateway.close());

  it("has an ordinary session", async () => {
    await runPython("flight_people.py", gateway.address);
    const pom = join(import.meta.dirname, "java-flight", "pom.xml");
    await runTool("mvn", ["-q", "-B", "-f", pom, "compile", "exec:exec", `-Daddress=${gateway.address}`]);
  });
});
