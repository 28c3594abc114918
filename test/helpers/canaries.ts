import type { ChildProcess } from "node:child_process";
import { subscribe } from "node:diagnostics_channel";
import { readdirSync, readFileSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import { join } from "node:path";

/**
 * Every secret that a server in this process issued or received, by its value: tokens, client secrets, codes,
 * verifiers. What the program says and keeps is held against them after each test.
 */
const secrets = new Map<string, string>();
/** Too short to be distinguished from an ordinary word. */
const SHORTEST = 8;
/** Placeholders of secrets in sample data, and masks, are none. */
const STAND_INS = /^<.*>$|^\*+$/;

const IN_JSON = [
  "access_token",
  "refresh_token",
  "id_token",
  "client_secret",
  "device_code",
  "registration_access_token",
];
/** A secret in JSON. The text is searched, not parsed: to parse a large answer would stop every other test of the worker. */
const MEMBER = new RegExp(`"(${IN_JSON.join("|")})"\\s*:\\s*("(?:[^"\\\\]|\\\\.)*")`, "g");
const IN_FORMS = [...IN_JSON, "code", "code_verifier", "client_assertion", "assertion", "subject_token", "actor_token"];

/** Makes a value one that must never be said. */
export function plant(name: string, value: unknown): void {
  if (typeof value !== "string" || value.length < SHORTEST || STAND_INS.test(value)) return;
  if (!secrets.has(value)) secrets.set(value, name);
}

/** One run of the program: its inputs and all its outputs. */
interface Run {
  args: readonly string[];
  home: string | undefined;
  stdout: Buffer[];
  stderr: Buffer[];
}

const SECRET_VARIABLES = [
  "AGENTAUTH_API_TOKEN",
  "AGENTAUTH_CLIENT_SECRET",
  "AGENTAUTH_ID_TOKEN",
  "AGENTAUTH_IDP_CLIENT_SECRET",
  "AGENTAUTH_SUBJECT_TOKEN",
];

let runs: Run[] = [];

/** Watches a child process, without reading what it says in anybody's place. */
export function watch(
  child: Pick<ChildProcess, "stdout" | "stderr">,
  args: readonly string[],
  env: Readonly<Record<string, string>>,
): void {
  for (const name of SECRET_VARIABLES) plant(name, env[name]);
  const run: Run = { args, home: env["AGENTAUTH_HOME"], stdout: [], stderr: [] };
  tap(child.stdout, run.stdout);
  tap(child.stderr, run.stderr);
  runs.push(run);
}

interface Pushing {
  push(chunk: Buffer | null): boolean;
}

/** Keeps what comes in, before anybody reads it. */
function tap(stream: unknown, kept: Buffer[]): void {
  if (!isPushing(stream)) return;
  const push = stream.push.bind(stream);
  stream.push = (chunk) => {
    if (Buffer.isBuffer(chunk)) kept.push(chunk);
    return push(chunk);
  };
}

function isPushing(value: unknown): value is Pushing {
  return typeof value === "object" && value !== null && "push" in value;
}

// Every HTTP server of this process: the sandbox, and those whose answers a test writes.
subscribe("http.server.request.start", (message) => {
  const { request, response } = message as { request: IncomingMessage; response: ServerResponse };
  const sent: Buffer[] = [];
  const answered: Buffer[] = [];
  tap(request, sent);
  const { write, end } = response;
  const keep = (chunk: unknown) => {
    if (typeof chunk === "string" || chunk instanceof Uint8Array) answered.push(Buffer.from(chunk));
  };
  response.write = (...all: unknown[]) => {
    keep(all[0]);
    return Reflect.apply(write, response, all) as boolean;
  };
  response.end = (...all: unknown[]) => {
    keep(all[0]);
    learnFrom(sent, answered, response);
    return Reflect.apply(end, response, all) as typeof response;
  };
});

function learnFrom(sent: readonly Buffer[], answered: readonly Buffer[], response: ServerResponse): void {
  const form = new URLSearchParams(Buffer.concat(sent).toString("utf8"));
  for (const name of IN_FORMS) plant(name, form.get(name));
  const location = response.getHeader("location");
  if (typeof location === "string" && URL.canParse(location)) plant("code", new URL(location).searchParams.get("code"));
  const body = Buffer.concat(answered).toString("utf8");
  for (const [, name = "", text = ""] of body.matchAll(MEMBER)) plant(name, unquoted(text));
}

/** The value of a string in JSON; undefined where it is none, since a test may answer with anything. */
function unquoted(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The names of the secrets that a text has in it. */
function secretsIn(text: string): string[] {
  return [...secrets].filter(([value]) => text.includes(value)).map(([, name]) => name);
}

/** What a command is there to print: its names of secrets on standard output. Nothing may be on standard error. */
function allowed({ args }: Run): readonly string[] {
  const command = args.find((word) => !word.startsWith("-"));
  if (command === "login" && args.some((word) => word.startsWith("--hand-over")))
    return ["access_token", "refresh_token", "client_secret"];
  if (args.includes("--show-secrets")) return ["client_secret"];
  if (command === "token" || command === "exchange") return ["access_token"];
  // The ready line has what a script needs to use a sandbox, whose secrets protect nothing.
  const ofMachines = args.includes("machine") ? ["client_secret", "id_token", "assertion"] : [];
  if (command === "sandbox") return ["AGENTAUTH_API_TOKEN", "AGENTAUTH_CLIENT_SECRET", ...ofMachines];
  // Their output is another program's, or another server's; other tests check what is masked in it.
  if (command === "exec" || command === "request") return [...new Set(secrets.values())];
  return [];
}

// Where secrets are kept. Everywhere else, also in the names of files, is wrong.
const KEPT = /^(?:grants|clients|logins|revocations|tokens)(?:[/\\]|$)|^sandbox\.json$/;

function findings(run: Run): string[] {
  const stdout = secretsIn(Buffer.concat(run.stdout).toString("utf8")).filter((name) => !allowed(run).includes(name));
  const stderr = run.args.includes("exec") ? [] : secretsIn(Buffer.concat(run.stderr).toString("utf8"));
  const found = [...stdout.map((name) => `${name} on stdout`), ...stderr.map((name) => `${name} on stderr`)];
  return found.map((what) => `${what} of agentauth ${run.args.join(" ")}`);
}

function findingsBelow(home: string): string[] {
  return filesBelow(home)
    .filter((path) => !KEPT.test(path))
    .flatMap((path) => secretsIn(`${path}\n${read(join(home, path))}`).map((name) => `${name} in the file ${path}`));
}

function filesBelow(folder: string): string[] {
  try {
    const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
    return entries
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1));
  } catch {
    return [];
  }
}

function read(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    // Removed since, or made unreadable by a test.
    return "";
  }
}

/** Where secrets were said or kept since the last time, of all that are known by then. */
export function shownSecrets(): string[] {
  const since = runs;
  runs = [];
  const homes = new Set(since.flatMap(({ home }) => home ?? []));
  return [...new Set([...since.flatMap(findings), ...[...homes].flatMap(findingsBelow)])];
}

/** Throws if a run since the last check showed a secret. */
export function checkShownSecrets(): void {
  const found = shownSecrets();
  if (found.length > 0) throw new Error(`secrets were shown:\n${found.join("\n")}`);
}

/** Forgets every secret, so that those of one test file are not searched for in the next one. */
export function forgetSecrets(): void {
  secrets.clear();
}
