// Prints what vitest's JSON reports count together: "N passed, N failed, N skipped". A report that is not there is left out.
import { existsSync, readFileSync } from "node:fs";

const reports = process.argv.slice(2).filter((path) => existsSync(path));
const counts = reports.map((path) => countsOf(JSON.parse(readFileSync(path, "utf8"))));
const sum = (name) => counts.reduce((total, one) => total + one[name], 0);
if (reports.length > 0) console.log(`${sum("passed")} passed, ${sum("failed")} failed, ${sum("skipped")} skipped`);

function countsOf({ numPassedTests, numFailedTests, numPendingTests, numTodoTests, testResults }) {
  // A file that cannot be loaded has no tests, and counts as one failure.
  const broken = testResults.filter((file) => file.status === "failed" && file.assertionResults.length === 0);
  return {
    passed: numPassedTests,
    failed: numFailedTests + broken.length,
    skipped: numPendingTests + numTodoTests,
  };
}
