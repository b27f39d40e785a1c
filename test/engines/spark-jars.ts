import { join } from "node:path";
import { ROOT, runTool } from "../clients/support/tools.ts";

/** Returns the folder with the jars of Spark's connector. */
export async function sparkJars(): Promise<string> {
  const pom = join(import.meta.dirname, "spark", "pom.xml");
  await runTool("mvn", ["-q", "-B", "-f", pom, "dependency:copy-dependencies"]);
  return join(ROOT, ".cache", "engines-spark");
}
