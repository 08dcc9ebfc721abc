import type { Reporter, TestModule } from "vitest/node";

/** Ends a run with one plain line, so that anything that watches a log can read the result. */
export default class ClosingLine implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandled: readonly unknown[]): void {
    const count = { passed: 0, failed: unhandled.length, skipped: 0, pending: 0 };
    for (const module of modules) {
      // A file that could not even be loaded holds no test to fail.
      if (module.errors().length > 0) count.failed++;
      for (const test of module.children.allTests()) count[test.result().state]++;
    }
    process.on("exit", () => {
      console.log(`${count.passed} passed, ${count.failed} failed, ${count.skipped + count.pending} skipped`);
    });
  }
}
