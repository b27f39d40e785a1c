import { BaseSequencer, type TestSpecification } from "vitest/node";

/** Files that take several minutes, the longest first. A run without durations of an earlier one would begin such a small file last. */
const LONGEST = [
  "test/clients/pages/pages.test.ts",
  "test/clients/costs.test.ts",
  "test/clients/fuzz.test.ts",
];

/** Begins with the longest files, so that no worker is left alone with one at the end. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const isAt = (path: string) => sorted.filter(({ moduleId }) => moduleId.endsWith(`/${path}`));
    return [...new Set([...LONGEST.flatMap(isAt), ...sorted])];
  }
}
