import { inspect } from "node:util";
import { EXIT_CODES } from "../../src/cli/runtime/exit-codes.js";
import { cliHint } from "../../src/cli/runtime/hints.js";
import { type AgentAuthError, isAgentAuthError } from "../../src/errors.js";
import { ManagementClient } from "../../src/index.js";
import { AgentClient } from "../../src/oauth/agent.js";
import type { LoginMethod } from "../../src/oauth/login/login-method.js";
import { fileStore } from "../../src/store/file/file.js";
import { capturedWithPorts } from "../helpers/captured.js";
import { clockOfWork, withFastClock } from "../helpers/fast-clock.js";
import type { HostileCase } from "./case.js";
import {
  generalProblems,
  leaks,
  missingParts,
  rememberSecrets,
  stableText,
  storeSnapshot,
  wrongRequests,
} from "./checks.js";
import { type Kit, startKit } from "./kit/kit.js";

/** How a case ended. */
interface Ending {
  /** Empty if the case passes. */
  problems: string[];
  /** The complete error, without what differs from run to run; empty where there is none, or the library tells it. */
  text: string;
}

/** The result of a case against the command line. */
export interface CaseReport extends Ending {
  exit: number | null | undefined;
  /** The maximum over the runs of the case. */
  seconds: number;
  megabytes: number;
}

/**
 * Runs a case against the command line.
 *
 * @param startsProcesses whether each run is a separate process
 */
export function runCase(one: HostileCase, startsProcesses: boolean): Promise<CaseReport> {
  return onItsClock(one, () => runCommand(one, startsProcesses));
}

/** Runs a case against the library in this process. */
export function runInLibrary(one: HostileCase): Promise<Ending> {
  return onItsClock({ hurry: one.timeout === undefined ? CALM : 1, ...one }, () => runLibrary(one));
}

/** On a busy machine a peer may take longer than a limit: the cases that are not about one get four times as long. */
const CALM = 0.25;

function onItsClock<T>({ hurry }: Pick<HostileCase, "hurry">, run: () => Promise<T>): Promise<T> {
  return hurry === undefined ? run() : withFastClock(hurry, run);
}

async function runCommand(one: HostileCase, startsProcesses: boolean): Promise<CaseReport> {
  const kit = await startKit(one.world ?? "loopback", startsProcesses);
  try {
    await one.arrange?.(kit);
    const before = storeSnapshot(kit, one);
    const run = await (one.drive?.(kit) ?? start(one, kit));
    rememberSecrets(kit);
    const wanted = EXIT_CODES[one.outcome];
    const ended =
      run.code === wanted ? [] : [`exit code ${run.code ?? run.signal}, not ${wanted}: ${run.stderr.slice(0, 1000)}`];
    const problems = [
      ...ended,
      ...missingParts(one, kit, run.stderr),
      ...wrongRequests(one, kit.log),
      ...storeProblems(one, before, kit),
      ...leaks(one, kit),
      ...kit.runs.flatMap((each) => generalProblems(one, each)),
      ...((await one.check?.(kit, run)) ?? []),
    ];
    return {
      problems,
      text: isForLibrary(one) ? "" : stableText(/^error: .*/ms.exec(run.stderr)?.[0] ?? "", kit),
      exit: run.code,
      seconds: Math.max(...kit.runs.map(({ seconds }) => seconds)),
      megabytes: Math.max(...kit.runs.map(({ megabytes = 0 }) => megabytes)),
    };
  } finally {
    await kit.close();
  }
}

function start(one: HostileCase, kit: Kit) {
  const { environment = {}, user, run = {} } = one;
  const env = typeof environment === "function" ? environment(kit) : environment;
  return kit.run(argumentsOf(one, kit), { ...run, env, user });
}

function argumentsOf({ command = "login", flags = [], timeout, retries }: HostileCase, kit: Kit): string[] {
  const more = [
    ...flags,
    ...(timeout ? ["--timeout", String(timeout)] : []),
    ...(retries === false ? ["--retries", "0"] : []),
  ];
  if (typeof command === "function") return [...command(kit), ...more];
  if (command === "devices") return ["devices", "list", "--pool", "pool_1", ...more];
  return [command, kit.mcp.url, ...(command === "login" ? ["--browser", "none"] : []), ...more];
}

function storeProblems(one: HostileCase, before: string, kit: Kit): string[] {
  if ((one.store ?? (one.outcome === "ok" ? "any" : "same")) === "any") return [];
  const after = storeSnapshot(kit, one);
  return after === before ? [] : [`the store changed: ${before} | ${after}`];
}

/** Whether a case also applies to the library. */
export function isForLibrary({
  command = "login",
  flags,
  options,
  user,
  drive,
  environment,
  run,
  world,
  cliOnly,
}: HostileCase) {
  const isPlain = !user && !drive && !environment && !run && !cliOnly && world !== "public";
  return isPlain && typeof command === "string" && (!flags || options !== undefined);
}

async function runLibrary(one: HostileCase): Promise<Ending> {
  const kit = await startKit("loopback");
  try {
    await one.arrange?.(kit);
    const before = storeSnapshot(kit, one);
    const error = await (one.call?.(kit) ?? callLibrary(one, kit)).then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    rememberSecrets(kit);
    const ended = isAgentAuthError(error) ? error.class : error === undefined ? "ok" : `a ${String(error)}`;
    const wanted: readonly string[] = one.inLibrary ?? [one.outcome];
    const code = isAgentAuthError(error) ? error.code : undefined;
    // The cases quote the hint of the command line, which names flags: it shows that the remedy of the error is right.
    const text = isAgentAuthError(error) ? `error: ${error.message}\nhint: ${cliHint(error).hint ?? ""}` : "";
    const shown = [text, JSON.stringify(error), inspect(error, { depth: 10 })].join("\n");
    const problems = [
      ...(wanted.includes(ended) ? [] : [`it ended with ${ended}, not ${wanted.join(" or ")}: ${text}`]),
      ...(one.code === undefined || one.code === code ? [] : [`the code is ${code}, not ${one.code}`]),
      ...(one.outcome === "ok" ? [] : missingParts(one, kit, text)),
      ...wrongRequests(one, kit.log),
      ...storeProblems(one, before, kit),
      ...kit.canaries.in(shown).map((name) => `${name} in the error`),
      ...((await one.check?.(kit, undefined)) ?? []),
    ];
    return {
      problems,
      text: isAgentAuthError(error) ? stableText(adviceTo(error), kit) : "",
    };
  } finally {
    await kit.close();
  }
}

/** The error, and what the command line makes of its remedy. */
function adviceTo(error: AgentAuthError): string {
  const { hint } = cliHint(error);
  return hint === undefined || hint === error.hint
    ? capturedWithPorts(error)
    : `${capturedWithPorts(error)}\nadvice: ${hint}`;
}

async function callLibrary({ command, options, timeout, retries }: HostileCase, kit: Kit): Promise<unknown> {
  const common = {
    clock: clockOfWork(),
    timeoutMs: timeout === undefined ? undefined : timeout * 1000,
    maxRetries: retries === false ? 0 : undefined,
  };
  if (command === "devices") {
    const { origin: baseUrl } = kit.service;
    const service = new ManagementClient({ baseUrl, token: kit.canaries.get("api-token"), ...common });
    return service.devices.list({ pool_id: "pool_1" }).toArray();
  }
  const agent = new AgentClient({ store: fileStore(kit.home), login: immediateLogin, ...common, ...options });
  return command === "token" ? agent.token(kit.mcp.url, { login: false }) : agent.login(kit.mcp.url);
}

/** A login method that completes at once. */
const immediateLogin: LoginMethod = {
  open: async () => ({
    redirectUri: "http://127.0.0.1:49152/callback",
    async authorize({ url, signal }) {
      const response = await fetch(url, { redirect: "manual", signal });
      return new URL(response.headers.get("location") ?? "http://127.0.0.1").searchParams;
    },
    close: async () => undefined,
  }),
  showDeviceCode: async () => undefined,
};
