// Fails when the registry knows of a vulnerability in what the package depends on. A registry that keeps no
// advisories gives no report; the output says so, and the check does not fail.
import { spawnSync } from "node:child_process";

interface Report {
  readonly message?: string;
  readonly metadata?: { readonly vulnerabilities: { readonly total: number } };
}

const { stdout } = spawnSync("npm", ["audit", "--omit=dev", "--json"], { encoding: "utf8" });
const report = JSON.parse(stdout) as Report;
const total = report.metadata?.vulnerabilities.total;
if (total === undefined) {
  console.warn(`NOT CHECKED: npm audit gave no report (${report.message ?? "no reason given"}).`);
} else if (total > 0) {
  console.error(stdout);
  process.exit(1);
} else {
  console.log("No known vulnerabilities.");
}
