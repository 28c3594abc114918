import { createHash } from "node:crypto";
import { statSync } from "node:fs";
import { unsafeIn } from "../helpers/cli.js";
import type { Seen } from "../helpers/peer.js";
import type { HostileCase } from "./case.js";
import { filesBelow } from "./kit/canaries.js";
import type { Kit } from "./kit/kit.js";
import type { Run } from "./kit/watched.js";

/** The folder for files of a case, which may contain secrets. */
export const PLANTED = "planted";

/** The store as comparable text: each file with its mode and the digest of its content. */
export function storeSnapshot(kit: Kit, { store }: HostileCase): string {
  if (!statSync(kit.home, { throwIfNoEntry: false })?.isDirectory()) return "";
  const compared = store === "logins" ? /^grants(?:-by-server)?\// : /^(?!claims\/)/;
  return filesBelow(kit.home)
    .filter(({ path }) => compared.test(path))
    .map(
      ({ path, mode, content }) => `${path} ${mode.toString(8)} ${createHash("sha256").update(content).digest("hex")}`,
    )
    .sort()
    .join("\n");
}

/** The forbidden requests that were sent, and the required ones that were not. */
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
    .map((part) => `not printed: ${String(part)}, but ${JSON.stringify(text.slice(0, 1000))}`);
}

/**
 * A text of a case without what differs from run to run: ports, folders, times, what is drawn at random, and the words
 * that a version of Node has for a broken connection.
 */
export function stableText(text: string, { mcp, as, other, service, elsewhere, folder }: Kit): string {
  const named = Object.entries({ mcp, as, other, service, elsewhere });
  const names = new Map(named.map(([name, { origin }]) => [new URL(origin).port, name]));
  return text
    .replaceAll(folder, "~")
    .replace(/\n +at .*/g, "")
    .replace(/\((?:[A-Z]+_[A-Z_]+|\w+Error): .*\)/g, "(<reason>)")
    .replace(/\/\S*\/f-\w+(?=\/)/g, "<folder>")
    .replace(/\b[\da-f]{16,}\b|\b[\da-f-]{36}\b|(?<=\blogin "|\/logins\/)[\w-]{12}(?=["./])/g, "<id>")
    .replace(/(?<=(?:127\.0\.0\.1|localhost|\[::1\])(?::|%3A)|port )\d+/g, (port) => names.get(port) ?? "<port>")
    .replace(/\b\d{4}-\d\d-\d\dT[\d:.]+Z/g, "<time>");
}

/** Adds the secrets that the program generated, taken from its requests. */
export function rememberSecrets({ canaries, log }: Kit): void {
  for (const { body, headers } of log) {
    canaries.add("verifier", new URLSearchParams(body).get("code_verifier") ?? "");
    canaries.add("credentials", headers.authorization?.split(" ")[1] ?? "");
  }
}

/** The secrets that leaked. */
export function leaks({ prints = [] }: HostileCase, kit: Kit): string[] {
  const { canaries, runs, pages, folder } = kit;
  const printed = runs.flatMap(({ stdout, stderr, commandLines }) => [
    ...canaries.in(stdout, prints).map((name) => `${name} in stdout`),
    ...canaries.in(stderr).map((name) => `${name} in stderr`),
    ...canaries.in(commandLines.join("\n")).map((name) => `${name} in a command line`),
  ]);
  const shown = canaries.in(pages.join("\n")).map((name) => `${name} in a page`);
  const written = filesBelow(folder)
    .filter(({ path }) => !/^(?:settings\/(?:\d+\/)?(?:grants|clients|logins|revocations)|planted)\//.test(path))
    .flatMap(({ path, content }) => canaries.in(content.toString("latin1")).map((name) => `${name} in ${path}`));
  return [...printed, ...shown, ...written];
}

/** Problems of a run in any case: time, memory, stack traces, characters that control a terminal. */
export function generalProblems({ seconds = 15, megabytes = 150 }: HostileCase, run: Run): string[] {
  const problems: string[] = [];
  if (run.seconds > seconds) problems.push(`it took ${run.seconds.toFixed(1)} s`);
  if (run.megabytes !== undefined && run.megabytes > megabytes)
    problems.push(`it took ${Math.round(run.megabytes)} MB`);
  // --debug prints stack traces on purpose.
  if (!run.args.includes("--debug") && /^\s+at .+:\d+:\d+\)?$/m.test(run.stderr))
    problems.push(`a stack trace: ${run.stderr.slice(0, 500)}`);
  for (const stream of ["stdout", "stderr"] as const) {
    // CSV lines end with CRLF (RFC 4180 section 2), and a quoted cell has the value unchanged.
    const text = run.args.includes("csv")
      ? run[stream].replace(/"(?:[^"]|"")*"/g, "").replaceAll("\r\n", "\n")
      : run[stream];
    const unsafe = unsafeIn(text);
    if (unsafe.length > 0) problems.push(`${stream} has U+${[...new Set(unsafe)].join(", U+")}`);
  }
  return problems;
}
