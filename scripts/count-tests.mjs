// Prints what vitest's JSON report counts: "N passed, N failed, N skipped".
import { readFileSync } from "node:fs";

const report = JSON.parse(readFileSync(process.argv[2] ?? "", "utf8"));
const { numPassedTests: passed, numFailedTests, numPendingTests, numTodoTests } = report;
// A file that cannot be loaded has no tests, and counts as one failure.
const broken = report.testResults.filter((file) => file.status === "failed" && file.assertionResults.length === 0);
console.log(`${passed} passed, ${numFailedTests + broken.length} failed, ${numPendingTests + numTodoTests} skipped`);
