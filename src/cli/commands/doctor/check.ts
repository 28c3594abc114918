import { abortedError, type ErrorClass, isAgentAuthError, messageOf } from "../../../errors.js";
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

/** The areas of failures, the most severe first: each with its exit code, and the hint for an error that has none. */
const AREAS = {
  settings: { exitCode: EXIT_CODES.usage, hint: "agentauth config list --show-origin shows where it is set" },
  store: { exitCode: EXIT_CODES.store, hint: "set AGENTAUTH_HOME to a folder that you can write to" },
  online: { exitCode: EXIT_CODES.unavailable, hint: "run it again with --verbose, which logs each request" },
} as const;

/** The area of a failure. */
export type Area = keyof typeof AREAS;

/** A wrong setting keeps its area, even if an online check finds it; a store may be in an engine that does not answer. */
const AREA_OF: Readonly<Partial<Record<ErrorClass, Area>>> = {
  usage: "settings",
  unavailable: "online",
  store: "store",
};

/** What a check looks for. May throw: an error becomes a finding. Undefined for a check that is not for this run. */
export type Check<Subject> = (subject: Subject) => CheckFinding | undefined | Promise<CheckFinding | undefined>;

/** Checks by their names, each with the area of its failures, in the order of the report. */
export type AreaChecks<Subject> = readonly (readonly [Area, Readonly<Record<string, Check<Subject>>>])[];

function finding(state: CheckState): (found: string, hint?: string) => CheckFinding {
  return (found, hint) => ({ state, found, ...(hint !== undefined && { hint }) });
}

/** A finding without a problem. */
export const ok = finding("ok");
/** A finding that the user should know of, although everything works. */
export const warning = finding("warning");
/** A finding that prevents something from working, or from working safely. */
export const failed = finding("failed");
/** A check that was not run, with the reason. */
export const skipped = finding("skipped");

/**
 * Runs every check: the online checks at the same time, the others one by one. A check that throws has failed; the others
 * still run.
 *
 * @returns the findings in order, and 0 or the exit code of the most severe failure
 * @throws `AgentAuthError` `aborted` when the signal fires
 */
export async function runChecks<Subject>(
  checks: AreaChecks<Subject>,
  subject: Subject,
  signal: AbortSignal,
): Promise<{ results: CheckResult[]; exitCode: number }> {
  const results: CheckResult[] = [];
  const broken = new Set<Area>();
  const all = checks.flatMap(([area, byName]) =>
    Object.entries(byName).map(([name, check]) => {
      const run = () => attempt(area, () => check(subject));
      return { name, run, started: area === "online" ? run() : undefined };
    }),
  );
  for (const { name, run, started } of all) {
    const { found, area } = await (started ?? run());
    if (signal.aborted) throw abortedError(signal);
    if (found === undefined) continue;
    results.push({ name, ...found });
    if (found.state === "failed") broken.add(area);
  }
  const mostSevere = Object.entries(AREAS).find(([area]) => broken.has(area as Area));
  return { results, exitCode: mostSevere?.[1].exitCode ?? EXIT_CODES.ok };
}

async function attempt(
  area: Area,
  run: () => ReturnType<Check<never>>,
): Promise<{ found: CheckFinding | undefined; area: Area }> {
  try {
    return { found: await run(), area };
  } catch (thrown) {
    if (!isAgentAuthError(thrown)) {
      const why = messageOf(thrown);
      return { found: failed(`the check failed: ${why}`, "this is a bug in agentauth: please report it"), area };
    }
    const { message, hint } = cliHint(thrown);
    const about = AREA_OF[thrown.class] ?? area;
    return { found: failed(message, hint ?? AREAS[about].hint), area: about };
  }
}
