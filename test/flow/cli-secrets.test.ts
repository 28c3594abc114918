import { createHash } from "node:crypto";
import { once } from "node:events";
import { readFileSync, statSync } from "node:fs";
import { join, relative } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { fileStore } from "../../src/store/file/file.js";
import { type CliResult, collect, runCli, startCli, temporaryFolder, until } from "../helpers/cli.js";
import { callbackOf, type Desk, filesBelow, signInUrl, startDesk } from "./support.js";

let desk: Desk;
/** The person's own folder, in which the program makes one. */
let home: string;
let settings: string;
let env: Record<string, string>;
/** Everything that the runs so far have said, by what was run. */
const said = new Map<string, CliResult>();
/** What must not be said, by what it is. */
const secrets = new Map<string, string>();
const challenges = new Set<string>();

/** A browser that writes its arguments and its environment to a file, and does not open the address. */
const SPY = `sh -c 'for word; do echo "$word"; done > "$HOME/argv"; env > "$HOME/new"; mv "$HOME/new" "$HOME/seen"' browser`;
/** The files of {@link SPY}. */
const BY_SPY = ["argv", "seen"];

beforeAll(async () => {
  desk = await startDesk();
  home = temporaryFolder();
  settings = join(home, "agentauth");
  env = {
    HOME: home,
    AGENTAUTH_HOME: settings,
    AGENTAUTH_BASE_URL: desk.sandbox.baseUrl,
    AGENTAUTH_API_TOKEN: desk.sandbox.apiToken,
  };
  secrets.set("API token", desk.sandbox.apiToken);
  const { url } = desk;
  await login("-v");
  await login("--debug");
  await run("token", url, "--force-refresh", "--debug");
  await remember();
  await run("mcp", "call", url, "whoami", "--debug");
  await run("mcp", "call", url, "admin_report", "--debug");
  for (const format of ["table", "wide", "json", "yaml", "csv"]) await run("status", url, "-o", format, "--debug");
  await run("status", "--all", "--json", "-v");
  await run("discover", url, "--debug");
  await run("discover", url, "-o", "json", "--debug");
  await run("introspect", url, "--debug");
  desk.sandbox.faults.add({ kind: "status", status: 500, path: "token", times: 0 });
  await run("token", url, "--force-refresh", "-v");
  desk.sandbox.faults.clear();
  await run("logout", url, "--debug");
}, 120_000);
afterAll(() => desk.close());

async function run(...args: string[]): Promise<void> {
  said.set(args.join(" "), await runCli(args, { env }));
}

/** Signs in with the test as the browser, so that it sees the code. */
async function login(flag: string): Promise<void> {
  const args = ["login", desk.url, flag, "--browser", SPY];
  const child = startCli(args, { env });
  const [out, err] = [collect(child.stdout), collect(child.stderr)];
  const ended = once(child, "close") as Promise<[number | null, NodeJS.Signals | null]>;
  await Promise.race([until(() => signInUrl(err()) !== undefined), ended]);
  const address = signInUrl(err());
  if (address === undefined) throw new Error(err());
  await until(() => statSync(join(home, "seen"), { throwIfNoEntry: false }) !== undefined);
  challenges.add(address.searchParams.get("code_challenge") ?? "");
  const callback = await callbackOf(address);
  secrets.set(`code of ${flag}`, new URL(callback).searchParams.get("code") ?? "");
  await (await fetch(callback)).text();
  const [code, signal] = await ended;
  said.set(args.slice(0, 3).join(" "), { code, signal, stdout: out(), stderr: err() });
  await remember();
}

/** Every secret that is kept now. */
async function remember(): Promise<void> {
  for (const { generation, tokens, client } of await fileStore(settings).list()) {
    secrets.set(`access token ${generation}`, tokens.accessToken.reveal());
    secrets.set(`refresh token ${generation}`, tokens.refreshToken?.reveal() ?? "");
    secrets.set("client secret", client.clientSecret?.reveal() ?? "");
  }
}

/** The names of the secrets in a text; a verifier is known by the challenge that it makes. */
function secretsIn(text: string): string[] {
  const found = [...secrets].filter(([, value]) => text.includes(value)).map(([name]) => name);
  const words = text.match(/[\w\-.~]{43,128}/g) ?? [];
  const isVerifier = (word: string) => challenges.has(createHash("sha256").update(word).digest("base64url"));
  return words.some(isVerifier) ? [...found, "verifier"] : found;
}

it("has run everything as it should, and knows what to look for", () => {
  const codes = [...said].filter(([, { code }]) => code !== 0).map(([args, { code }]) => [args.split(" ")[0], code]);
  expect(codes).toEqual([
    ["mcp", 4],
    ["token", 5],
  ]);
  expect([...secrets.keys()].sort()).toEqual([
    "API token",
    "access token 1",
    "access token 2",
    "access token 3",
    "client secret",
    "code of --debug",
    "code of -v",
    "refresh token 1",
    "refresh token 2",
    "refresh token 3",
  ]);
  expect(Math.min(...[...secrets.values()].map(({ length }) => length))).toBeGreaterThan(20);
  expect(challenges.size).toBe(2);
});

it("says no secret on standard error, however much it is asked to say", () => {
  for (const [args, { stderr }] of said) expect([args, secretsIn(stderr)]).toEqual([args, []]);
});

it("says no secret on standard output but the token that was asked for", () => {
  for (const [args, { stdout }] of said) {
    const expected = args.startsWith("token ") && stdout !== "" ? ["access token 3"] : [];
    expect([args, secretsIn(stdout)]).toEqual([args, expected]);
  }
});

it("gives the browser's command the address, and none of our settings", () => {
  const [argv = "", environment = ""] = ["argv", "seen"].map((name) => readFileSync(join(home, name), "utf8"));
  expect(argv).toMatch(/^http:.*code_challenge=.*\n$/);
  expect(environment).toContain(`HOME=${home}\n`);
  expect(environment).not.toMatch(/^AGENTAUTH_/m);
  expect(secretsIn(argv + environment)).toEqual([]);
});

it("stores its files where no other user can read them, and nothing elsewhere", () => {
  const files = filesBelow(home).filter(({ path }) => !BY_SPY.includes(relative(home, path)));
  expect(files.length).toBeGreaterThan(2);
  for (const { path, mode } of files) expect([path, mode & 0o077]).toEqual([path, 0]);
  for (const { path } of files) expect(path.startsWith(settings)).toBe(true);
});

it("stores no token after the logout", () => {
  for (const { path, text } of filesBelow(home)) {
    expect([path, secretsIn(text).filter((name) => name !== "client secret")]).toEqual([path, []]);
  }
});
