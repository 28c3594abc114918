import type { Reporter, TestCase, TestModule } from "vitest/node";

const CHECK_MS = 60_000;
const SLOW_MS = 3 * 60_000;

interface Running {
  readonly startedAt: number;
  readonly cases: Set<string>;
}

/** Names on stderr the test files that have run for minutes, and their cases: a file that hangs reports nothing itself. */
export function watchdog(report: (line: string) => void = (line) => void process.stderr.write(`${line}\n`)): Reporter {
  const running = new Map<string, Running>();
  let timer: NodeJS.Timeout | undefined;
  const check = () => {
    for (const [file, { startedAt, cases }] of running) {
      const ms = Date.now() - startedAt;
      if (ms < SLOW_MS) continue;
      const names = cases.size > 0 ? [...cases].join("; ") : "no case reported";
      report(`Still running after ${Math.round(ms / 1000)} s: ${file} (${names})`);
    }
  };
  const casesOf = ({ module }: TestCase) => running.get(nameOf(module))?.cases;
  return {
    onTestRunStart() {
      clearInterval(timer);
      running.clear();
      timer = setInterval(check, CHECK_MS).unref();
    },
    // Not its start: a file can hang while its imports are evaluated.
    onTestModuleQueued: (module) => void running.set(nameOf(module), { startedAt: Date.now(), cases: new Set() }),
    onTestModuleEnd: (module) => void running.delete(nameOf(module)),
    onTestCaseReady: (test) => void casesOf(test)?.add(test.fullName),
    onTestCaseResult: (test) => void casesOf(test)?.delete(test.fullName),
    onTestRunEnd: () => clearInterval(timer),
  };
}

const nameOf = ({ relativeModuleId, project }: TestModule) => `${project.name} ${relativeModuleId}`;
