import { createHash } from "node:crypto";
import { once } from "node:events";
import { readFileSync, statSync } from "node:fs";
import { join, relative } from "node:path";
import { expect } from "vitest";
import { fileStore } from "../../src/store/file/file.js";
import { type CliResult, collect, runCli, startCli, temporaryFolder, until } from "../helpers/cli.js";
import { callbackOf, filesBelow, flowTest, type Harness, loginUrl } from "./support.js";

/** A browser that writes its arguments and its environment to a file, and does not open the address. */
const SPY = `sh -c 'for word; do echo "$word"; done > "$HOME/argv"; env > "$HOME/new"; mv "$HOME/new" "$HOME/seen"' browser`;
/** The files of {@link SPY}. */
const BY_SPY = ["argv", "seen"];

/** Every command that uses a login, run once each, with flags that print as much as possible. */
class RecordedRuns {
  /** The user's home folder, in which the program creates its own. */
  readonly home = temporaryFolder();
  readonly settings = join(this.home, "agentauth");
  /** The results of the runs so far, by their arguments. */
  readonly results = new Map<string, CliResult>();
  /** The secrets that no output may contain, by name. */
  readonly secrets = new Map<string, string>();
  readonly challenges = new Set<string>();
  readonly #harness: Harness;
  readonly #env: Record<string, string>;

  constructor(harness: Harness) {
    const { apiToken, baseUrl } = harness.sandbox;
    this.#harness = harness;
    this.#env = {
      HOME: this.home,
      AGENTAUTH_HOME: this.settings,
      AGENTAUTH_BASE_URL: baseUrl,
      AGENTAUTH_API_TOKEN: apiToken,
    };
    this.secrets.set("API token", apiToken);
  }

  async record(): Promise<this> {
    const { sandbox, url } = this.#harness;
    await this.#login("-v");
    await this.#login("--debug");
    await this.#run("token", url, "--force-refresh", "--debug");
    await this.#remember();
    await this.#run("mcp", "call", url, "whoami", "--debug");
    await this.#run("mcp", "call", url, "admin_report", "--debug");
    for (const format of ["table", "wide", "json", "csv"]) await this.#run("status", url, "-o", format, "--debug");
    await this.#run("status", "--all", "--json", "-v");
    await this.#run("discover", url, "--debug");
    await this.#run("discover", url, "-o", "json", "--debug");
    await this.#run("introspect", url, "--debug");
    sandbox.faults.add({ kind: "status", status: 500, path: "token", times: 0 });
    await this.#run("token", url, "--force-refresh", "-v");
    sandbox.faults.clear();
    await this.#run("logout", url, "--debug");
    return this;
  }

  /** The names of the secrets in a text; a verifier is known by the challenge that it makes. */
  secretsIn(text: string): string[] {
    const found = [...this.secrets].filter(([, value]) => text.includes(value)).map(([name]) => name);
    const words = text.match(/[\w\-.~]{43,128}/g) ?? [];
    const isVerifier = (word: string) => this.challenges.has(createHash("sha256").update(word).digest("base64url"));
    return words.some(isVerifier) ? [...found, "verifier"] : found;
  }

  async #run(...args: string[]): Promise<void> {
    this.results.set(args.join(" "), await runCli(args, { env: this.#env }));
  }

  /** Logs in with the test as the browser, so that it sees the code. */
  async #login(flag: string): Promise<void> {
    const args = ["login", this.#harness.url, flag, "--browser", SPY];
    const child = startCli(args, { env: this.#env });
    const [out, err] = [collect(child.stdout), collect(child.stderr)];
    const ended = once(child, "close") as Promise<[number | null, NodeJS.Signals | null]>;
    await Promise.race([until(() => loginUrl(err()) !== undefined), ended]);
    const address = loginUrl(err());
    if (address === undefined) throw new Error(err());
    await until(() => statSync(join(this.home, "seen"), { throwIfNoEntry: false }) !== undefined);
    this.challenges.add(address.searchParams.get("code_challenge") ?? "");
    const callback = await callbackOf(address);
    this.secrets.set(`code of ${flag}`, new URL(callback).searchParams.get("code") ?? "");
    await (await fetch(callback)).text();
    const [code, signal] = await ended;
    this.results.set(args.slice(0, 3).join(" "), { code, signal, stdout: out(), stderr: err() });
    await this.#remember();
  }

  /** Adds every secret that is stored now. */
  async #remember(): Promise<void> {
    for (const { generation, tokens, client } of await fileStore(this.settings).list()) {
      this.secrets.set(`access token ${generation}`, tokens.accessToken.reveal());
      this.secrets.set(`refresh token ${generation}`, tokens.refreshToken?.reveal() ?? "");
      this.secrets.set("client secret", client.clientSecret?.reveal() ?? "");
    }
  }
}

const it = flowTest().extend("runs", { scope: "file" }, ({ harness }) => new RecordedRuns(harness).record());

it("every run ends as expected, and every secret is known", ({ runs }) => {
  const codes = [...runs.results]
    .filter(([, { code }]) => code !== 0)
    .map(([args, { code }]) => [args.split(" ")[0], code]);
  expect(codes).toEqual([
    ["mcp", 4],
    ["token", 5],
  ]);
  expect([...runs.secrets.keys()].sort()).toEqual([
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
  expect(Math.min(...[...runs.secrets.values()].map(({ length }) => length))).toBeGreaterThan(20);
  expect(runs.challenges.size).toBe(2);
});

it("no secret is on standard error, with any flag", ({ runs }) => {
  for (const [args, { stderr }] of runs.results) expect([args, runs.secretsIn(stderr)]).toEqual([args, []]);
});

it("no secret is on standard output except the requested token", ({ runs }) => {
  for (const [args, { stdout }] of runs.results) {
    const expected = args.startsWith("token ") && stdout !== "" ? ["access token 3"] : [];
    expect([args, runs.secretsIn(stdout)]).toEqual([args, expected]);
  }
});

it("the browser's command gets the address, and no settings of agentauth", ({ runs }) => {
  const [argv = "", environment = ""] = ["argv", "seen"].map((name) => readFileSync(join(runs.home, name), "utf8"));
  expect(argv).toMatch(/^http:.*code_challenge=.*\n$/);
  expect(environment).toContain(`HOME=${runs.home}\n`);
  expect(environment).not.toMatch(/^AGENTAUTH_/m);
  expect(runs.secretsIn(argv + environment)).toEqual([]);
});

it("all files are where no other user can read them", ({ runs }) => {
  const files = filesBelow(runs.home).filter(({ path }) => !BY_SPY.includes(relative(runs.home, path)));
  expect(files.length).toBeGreaterThan(2);
  for (const { path, mode } of files) expect([path, mode & 0o077]).toEqual([path, 0]);
  for (const { path } of files) expect(path.startsWith(runs.settings)).toBe(true);
});

it("no token is stored after the logout", ({ runs }) => {
  for (const { path, text } of filesBelow(runs.home)) {
    expect([path, runs.secretsIn(text).filter((name) => name !== "client secret")]).toEqual([path, []]);
  }
});
