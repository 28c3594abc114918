import { createHash } from "node:crypto";
import { statSync } from "node:fs";
import { unsafeIn } from "../helpers/cli.js";
import type { HostileCase } from "./case.js";
import { filesBelow } from "./kit/canaries.js";
import type { Kit } from "./kit/kit.js";
import type { Seen } from "./kit/peer.js";
import type { Run } from "./kit/watched.js";

/** Files of a case's own making, which may hold what it plants. */
export const PLANTED = "planted";

/** What is stored, as a text to be compared: every file with its mode and the digest of its content. */
export function storeOf(kit: Kit, { store }: HostileCase): string {
  if (!statSync(kit.home, { throwIfNoEntry: false })?.isDirectory()) return "";
  const compared = store === "logins" ? /^grants\// : /^(?!claims\/)/;
  return filesBelow(kit.home)
    .filter(({ path }) => compared.test(path))
    .map(
      ({ path, mode, content }) => `${path} ${mode.toString(8)} ${createHash("sha256").update(content).digest("hex")}`,
    )
    .sort()
    .join("\n");
}

/** The requests that were sent though they must not be, or not though they must. */
export function wrongRequests({ requests, times }: HostileCase, log: readonly Seen[]): string[] {
  if (requests === undefined) return [];
  const sent = log.map(({ peer, method, path }) => `${peer} ${method} ${path}`.trimEnd());
  const must = requests.filter((one) => !one.endsWith("?"));
  const may = new Set(requests.map((one) => one.replace(/\?$/, "")));
  const counted = Object.entries(times ?? {}).map(([one, wanted]) => {
    const count = sent.filter((request) => request === one).length;
    return count === wanted ? [] : [`sent ${count} times, not ${wanted}: ${one}`];
  });
  return [
    ...[...new Set(sent)].filter((one) => !may.has(one)).map((one) => `sent: ${one}`),
    ...must.filter((one) => !sent.includes(one)).map((one) => `not sent: ${one}`),
    ...counted.flat(),
  ];
}

/** The parts that a text lacks. */
export function missingParts({ says = [] }: HostileCase, kit: Kit, text: string): string[] {
  const parts = typeof says === "function" ? says(kit) : says;
  return parts
    .filter((part) => (typeof part === "string" ? !text.includes(part) : !part.test(text)))
    .map((part) => `not said: ${String(part)}, but ${JSON.stringify(text.slice(0, 1000))}`);
}

/** Adds the secrets that the program made itself, as they were seen on their way. */
export function rememberSecrets({ canaries, log }: Kit): void {
  for (const { body, headers } of log) {
    canaries.add("verifier", new URLSearchParams(body).get("code_verifier") ?? "");
    canaries.add("credentials", headers.authorization?.split(" ")[1] ?? "");
  }
}

/** The secrets that turned up where they do not belong. */
export function leaks({ prints = [] }: HostileCase, kit: Kit): string[] {
  const { canaries, runs, pages, folder } = kit;
  const printed = runs.flatMap(({ stdout, stderr, commandLines }) => [
    ...canaries.in(stdout, prints).map((name) => `${name} in stdout`),
    ...canaries.in(stderr).map((name) => `${name} in stderr`),
    ...canaries.in(commandLines.join("\n")).map((name) => `${name} in a command line`),
  ]);
  const shown = canaries.in(pages.join("\n")).map((name) => `${name} in a page`);
  const written = filesBelow(folder)
    .filter(({ path }) => !/^(?:settings\/(?:\d+\/)?(?:grants|clients)|planted)\//.test(path))
    .flatMap(({ path, content }) => canaries.in(content.toString("latin1")).map((name) => `${name} in ${path}`));
  return [...printed, ...shown, ...written];
}

/** What is wrong with a run whatever the case: time, memory, a trace of the stack, characters that act on a terminal. */
export function misconduct({ seconds = 15, megabytes = 150 }: HostileCase, run: Run): string[] {
  const problems: string[] = [];
  if (run.seconds > seconds) problems.push(`it took ${run.seconds.toFixed(1)} s`);
  if (run.megabytes !== undefined && run.megabytes > megabytes)
    problems.push(`it took ${Math.round(run.megabytes)} MB`);
  // Where an error came from is what --debug is for.
  if (!run.args.includes("--debug") && /^\s+at .+:\d+:\d+\)?$/m.test(run.stderr))
    problems.push(`a stack trace: ${run.stderr.slice(0, 500)}`);
  for (const stream of ["stdout", "stderr"] as const) {
    // The lines of a CSV end with both (RFC 4180 section 2), and a cell in quotes holds what came.
    const text = run.args.includes("csv")
      ? run[stream].replace(/"(?:[^"]|"")*"/g, "").replaceAll("\r\n", "\n")
      : run[stream];
    const unsafe = unsafeIn(text);
    if (unsafe.length > 0) problems.push(`${stream} has U+${[...new Set(unsafe)].join(", U+")}`);
  }
  return problems;
}
