import { abortedError, isAgentAuthError } from "../../../errors.js";
import type { AgentFlags } from "../../flags/agent.js";
import type { OutputFlags } from "../../flags/output.js";
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
  hint?: string | undefined;
}

/** A finding with the name of its check. */
export interface CheckResult extends CheckFinding {
  /** What was checked. */
  name: string;
}

/** The areas of failures, the most severe first; the area decides the exit code. */
const AREAS = { settings: EXIT_CODES.usage, store: EXIT_CODES.store, online: EXIT_CODES.unavailable } as const;

/** The area of a failure. */
export type Area = keyof typeof AREAS;

/** One check of `doctor`. */
export interface DoctorCheck {
  name: string;
  area: Area;
  /** May throw: an error becomes a finding. Undefined for a check that is not for this run. */
  run(): CheckFinding | undefined | Promise<CheckFinding | undefined>;
}

/** A finding without a problem. */
export function ok(found: string): CheckFinding {
  return { state: "ok", found };
}

/** A finding that the user should know of, although everything works. */
export function warning(found: string, hint?: string): CheckFinding {
  return { state: "warning", found, hint };
}

/** A finding that prevents something from working, or from working safely. */
export function failed(found: string, hint?: string): CheckFinding {
  return { state: "failed", found, hint };
}

/** A check that was not run, with the reason. */
export function skipped(found: string, hint?: string): CheckFinding {
  return { state: "skipped", found, hint };
}

/**
 * Runs every check: the online checks at the same time, the others one by one. A check that throws has failed; the others
 * still run.
 *
 * @returns the findings in order, and 0 or the exit code of the most severe failure
 * @throws `AgentAuthError` `aborted` when the signal fires
 */
export async function runChecks(
  checks: readonly DoctorCheck[],
  signal: AbortSignal,
): Promise<{ results: CheckResult[]; exitCode: number }> {
  const results: CheckResult[] = [];
  const broken = new Set<Area>();
  const started = new Map(
    checks.flatMap((check) => (check.area === "online" ? [[check, attempt(check)] as const] : [])),
  );
  for (const check of checks) {
    const { finding, area } = await (started.get(check) ?? attempt(check));
    if (signal.aborted) throw abortedError(signal);
    if (finding === undefined) continue;
    results.push({ name: check.name, ...finding });
    if (finding.state === "failed") broken.add(area);
  }
  const mostSevere = Object.entries(AREAS).find(([area]) => broken.has(area as Area));
  return { results, exitCode: mostSevere?.[1] ?? EXIT_CODES.ok };
}

/** The hint for an error that has none. */
const OTHERWISE: Readonly<Record<Area, string>> = {
  settings: "agentauth config list --show-origin shows where it is set",
  store: "set AGENTAUTH_HOME to a folder that you can write to",
  online: "run it again with --verbose, which logs each request",
};

async function attempt({ area, run }: DoctorCheck): Promise<{ finding: CheckFinding | undefined; area: Area }> {
  try {
    return { finding: await run(), area };
  } catch (thrown) {
    if (!isAgentAuthError(thrown)) {
      const why = thrown instanceof Error ? thrown.message : "?";
      return { finding: failed(`the check failed: ${why}`, "this is a bug in agentauth: please report it"), area };
    }
    const { message, hint } = cliHint(thrown);
    const about = areaOf(thrown.class) ?? area;
    return { finding: failed(message, hint ?? OTHERWISE[about]), area: about };
  }
}

/** A wrong setting keeps its area, even if an online check finds it; a store may be in an engine that does not answer. */
function areaOf(errorClass: string): Area | undefined {
  if (errorClass === "usage") return "settings";
  if (errorClass === "unavailable") return "online";
  return errorClass === "store" ? "store" : undefined;
}

/** Options of `doctor`. */
export interface DoctorFlags extends AgentFlags, OutputFlags {
  url?: string;
  online?: boolean;
}
