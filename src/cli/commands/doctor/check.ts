import { abortedError, isAgentAuthError, messageOf } from "../../../errors.js";
import { EXIT_CODES } from "../../runtime/exit-codes.js";
import { cliHint } from "../../runtime/hints.js";

/** How a check ended; only `failed` changes the exit code. */
export type CheckState = "ok" | "warning" | "failed" | "skipped";

/** The result of a check, as text for the user. */
export interface CheckFinding {
  /** Only `failed` changes the exit code. */
  state: CheckState;
  /** What was found. */
  found: string;
  /** The command, flag or setting that helps. */
  hint?: string;
}

/** A finding with the name of its check. */
export interface CheckResult extends CheckFinding {
  /** What was checked. */
  name: string;
}

/** The classes of failures, the most severe first: each with the hint for an error that has none. */
const HINTS = {
  usage: "agentauth config list --show-origin shows where it is set",
  store: "set AGENTAUTH_HOME to a folder that you can write to",
  unavailable: "run it again with --verbose, which logs each request",
} as const;

/** The class of a failure, which is that of an error and names an exit code. */
export type FailureClass = keyof typeof HINTS;
const FAILURES = Object.keys(HINTS) as FailureClass[];

/** What a check looks for. May throw: an error becomes a finding. Undefined for a check that is not for this run. */
export type Check<Subject> = (subject: Subject) => CheckFinding | undefined | Promise<CheckFinding | undefined>;

/** Checks by their names, each with the class of its failures, in the order of the report. */
export type CheckList<Subject> = readonly (readonly [FailureClass, Readonly<Record<string, Check<Subject>>>])[];

function findingWith(state: CheckState): (found: string, hint?: string) => CheckFinding {
  return (found, hint) => ({ state, found, ...(hint !== undefined && { hint }) });
}

/** A finding without a problem. */
export const ok = findingWith("ok");
/** A finding that the user should know of, although everything works. */
export const warning = findingWith("warning");
/** A finding that prevents something from working, or from working safely. */
export const failed = findingWith("failed");
/** A check that was not run, with the reason. */
export const skipped = findingWith("skipped");

/**
 * Runs every check: those over the network at the same time, the others one by one. A check that throws has failed; the
 * others still run.
 *
 * @returns the findings in order, and 0 or the exit code of the most severe failure
 * @throws `AgentAuthError` `aborted` when the signal fires
 */
export async function runChecks<Subject>(
  checks: CheckList<Subject>,
  subject: Subject,
  signal: AbortSignal,
): Promise<{ results: CheckResult[]; exitCode: number }> {
  const results: CheckResult[] = [];
  const failures = new Set<string>();
  const all = checks.flatMap(([failure, byName]) =>
    Object.entries(byName).map(([name, check]) => {
      const run = () => attempt(failure, () => check(subject));
      return { name, run, started: failure === "unavailable" ? run() : undefined };
    }),
  );
  for (const { name, run, started } of all) {
    const { found, failure } = await (started ?? run());
    if (signal.aborted) throw abortedError(signal);
    if (found === undefined) continue;
    results.push({ name, ...found });
    if (found.state === "failed") failures.add(failure);
  }
  const mostSevere = FAILURES.find((failure) => failures.has(failure));
  return { results, exitCode: EXIT_CODES[mostSevere ?? "ok"] };
}

async function attempt(
  failure: FailureClass,
  run: () => ReturnType<Check<never>>,
): Promise<{ found: CheckFinding | undefined; failure: FailureClass }> {
  try {
    return { found: await run(), failure };
  } catch (thrown) {
    if (!isAgentAuthError(thrown)) {
      const found = `the check failed: ${messageOf(thrown)}`;
      return { found: failed(found, "this is a bug in agentauth: please report it"), failure };
    }
    const { message, hint } = cliHint(thrown);
    // A wrong setting is one even if an online check finds it; a store may be in an engine that does not answer.
    const own = FAILURES.find((one) => one === thrown.class) ?? failure;
    return { found: failed(message, hint ?? HINTS[own]), failure: own };
  }
}
