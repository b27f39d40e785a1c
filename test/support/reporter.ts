import type { SerializedError, TestCase, TestModule, TestModuleState, TestRunEndReason } from "vitest/node";
import { DefaultReporter } from "vitest/node";

/**
 * Prints each file with the titles of its tests and their annotations (seeds, counts), then the failures in full. The
 * last line of a run is always `N passed, N failed, N skipped`. A failure of a file, of a suite or of a hook and an
 * error that no test catches count as a failure each.
 */
export default class SentenceReporter extends DefaultReporter {
  protected override verbose = true;
  override renderSucceed = true;

  protected override printTestCase(moduleState: TestModuleState, test: TestCase): void {
    super.printTestCase(moduleState, test);
    for (const { message } of test.annotations()) this.log(`     ${message}`);
  }

  override onTestRunEnd(
    modules: readonly TestModule[],
    errors: readonly SerializedError[],
    reason: TestRunEndReason,
  ): void {
    super.onTestRunEnd(modules, errors, reason);
    const tests = modules.flatMap((module) => [...module.children.allTests()]);
    const count = (state: string) => tests.filter((test) => test.result().state === state).length;
    const parts = modules.flatMap((module) => [module, ...module.children.allSuites()]);
    const failures = parts.flatMap((part) => part.errors()).length + errors.length;
    this.log(`Seed of what the tests draw: TEST_SEED=${process.env["TEST_SEED"]}`);
    this.log(`${count("passed")} passed, ${count("failed") + failures} failed, ${count("skipped")} skipped`);
  }
}
