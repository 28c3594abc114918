import { abortedError, isAgentAuthError } from "../../../errors.js";
import { EXIT_CODES } from "../../runtime/exit-codes.js";
import { cliHint } from "../../runtime/hints.js";

/** How a check ended; only `failed` changes the exit code. */
export type CheckState = "ok" | "warning" | "failed" | "skipped";

/** What a check found, in words for a person. */
export interface Finding {
  state: CheckState;
  found: string;
  /** The command, flag or setting that helps. */
  hint?: string | undefined;
}

/** A finding with the name of its check, as the report has it. */
export interface CheckResult extends Finding {
  name: string;
}

/** What a failure is about, the gravest first; it decides the exit code. */
const AREAS = { settings: EXIT_CODES.usage, store: EXIT_CODES.store, online: EXIT_CODES.unavailable } as const;

/** What a failure is about. */
export type Area = keyof typeof AREAS;

/** One question that `doctor` asks. */
export interface Check {
  name: string;
  area: Area;
  /** May throw: an error is a finding too. */
  run(): Finding | Promise<Finding>;
}

/** A finding that says that all is well. */
export function ok(found: string): Finding {
  return { state: "ok", found };
}

/** A finding that a person should know of, though everything works. */
export function warning(found: string, hint?: string): Finding {
  return { state: "warning", found, hint };
}

/** A finding that keeps something from working, or from working safely. */
export function failed(found: string, hint?: string): Finding {
  return { state: "failed", found, hint };
}

/** A question that was not asked, with the reason. */
export function skipped(found: string, hint?: string): Finding {
  return { state: "skipped", found, hint };
}

/**
 * Asks every question: those that go over the network at once, so that they are waited for together, and the others one
 * after the other. A check that throws has failed, and the others are asked all the same.
 *
 * @returns the findings in order, and 0 or the exit code of the gravest failure
 * @throws `AgentAuthError` `aborted` when the signal fires
 */
export async function runChecks(
  checks: readonly Check[],
  signal: AbortSignal,
): Promise<{ results: CheckResult[]; exitCode: number }> {
  const results: CheckResult[] = [];
  const broken = new Set<Area>();
  const asked = new Map(checks.flatMap((check) => (check.area === "online" ? [[check, attempt(check)] as const] : [])));
  for (const check of checks) {
    const { finding, area } = await (asked.get(check) ?? attempt(check));
    if (signal.aborted) throw abortedError(signal);
    results.push({ name: check.name, ...finding });
    if (finding.state === "failed") broken.add(area);
  }
  const gravest = Object.entries(AREAS).find(([area]) => broken.has(area as Area));
  return { results, exitCode: gravest?.[1] ?? EXIT_CODES.ok };
}

/** What helps where an error does not say so itself. */
const OTHERWISE: Readonly<Record<Area, string>> = {
  settings: "agentauth config list --show-origin tells where it is set",
  store: "set AGENTAUTH_HOME to a folder that you can write to",
  online: "run it again with --verbose, which tells each request",
};

async function attempt({ area, run }: Check): Promise<{ finding: Finding; area: Area }> {
  try {
    return { finding: await run(), area };
  } catch (thrown) {
    if (!isAgentAuthError(thrown)) {
      const why = thrown instanceof Error ? thrown.message : "?";
      return { finding: failed(`this check broke off: ${why}`, "this is a bug in agentauth: please report it"), area };
    }
    const { message, hint } = cliHint(thrown);
    const about = areaOf(thrown.class) ?? area;
    return { finding: failed(message, hint ?? OTHERWISE[about]), area: about };
  }
}

/** A wrong setting is one also where only a request brought it to light. */
function areaOf(errorClass: string): Area | undefined {
  if (errorClass === "usage") return "settings";
  return errorClass === "store" ? "store" : undefined;
}
