import { AccessToken, coversScope, isFresh } from "../../oauth/model/grant.js";
import { parseMcpUrl } from "../../oauth/model/resource.js";
import { type Env, readEnv } from "../../platform.js";
import { buildSendOptions } from "../../profile/connection-settings.js";
import { resolveSettings } from "../../profile/resolve-settings.js";
import { homeFolder } from "../../profile/settings.js";
import { readConfig, writtenProfile } from "../../profile/settings-file.js";
import { Redactor } from "../../redact.js";
import { fileStore } from "../../store/file/file.js";
import { formatToken, UNKNOWN_ASKER } from "../clients/token-formats.js";
import { flagText } from "../flags/flag-name.js";
import { PipeClosed, writeAll } from "../io/write-all.js";
import type { Host } from "../runtime/context.js";

/**
 * Prints the token of a `token` command line that needs nothing but what is stored, without loading the program.
 *
 * @returns the exit code; undefined where nothing was printed and the whole program has to decide
 */
export async function printCachedToken(argv: readonly string[], host: Host): Promise<number | undefined> {
  const text = await cachedToken(argv, readEnv(host.env), host.clock?.epoch());
  if (text === undefined) return undefined;
  // A failed write also emits "error", which would end the process.
  host.stdout.on("error", () => {});
  try {
    await writeAll(host.stdout, text);
  } catch (error) {
    if (!(error instanceof PipeClosed)) return reportFailure(error, argv, host);
  }
  return 0;
}

/**
 * What a `token` command line prints when a token is stored in a file and fresh.
 *
 * @param now Unix milliseconds
 * @returns undefined where the arguments, the settings or the stored token are not as simple as that
 */
export async function cachedToken(argv: readonly string[], env: Env, now = Date.now()): Promise<string | undefined> {
  const args = argv[0] === "token" ? readArguments(argv.slice(1), "--format") : undefined;
  const format = FORMATS.find((known) => known === (args?.own ?? "raw"));
  const token = args && format && (await freshToken(args, env, now));
  try {
    return token && formatToken(format, token, { now, ...UNKNOWN_ASKER });
  } catch {
    return undefined;
  }
}

/**
 * The token that is stored in a file for a server, if it is fresh.
 *
 * Every rule about settings, files and tokens is the program's own. What one of them rejects is left to the whole
 * program, which meets it again and reports it.
 */
export async function freshToken(args: Arguments, set: Env, now = Date.now()): Promise<AccessToken | undefined> {
  if (set["AGENTAUTH_LOG"]) return undefined;
  try {
    const home = homeFolder(set);
    const config = readConfig(home);
    // No proxy is needed, but one that is no address is refused.
    buildSendOptions({ proxy: undefined, caFile: undefined, env: set }, new Redactor());
    const { profile: named, issuer, audit } = resolveSettings(args.profile, set, config, home, flagText);
    if (audit !== undefined) return undefined;
    const { value: profile } = named;
    if ((set["AGENTAUTH_STORE"] ?? writtenProfile(profile, config).entries.store ?? "file") !== "file")
      return undefined;
    const grant = await fileStore(home).read({ profile, server: parseMcpUrl(args.url).resource });
    if (!grant || !isFresh(grant, now, args.minTtl) || !coversScope(grant, args.scope)) return undefined;
    if (grant.proofKey !== undefined) return undefined;
    if (issuer !== undefined && grant.issuer !== issuer.value) return undefined;
    return new AccessToken(grant);
  } catch {
    return undefined;
  }
}

/** Those that read nothing but the token. */
const FORMATS = ["raw", "header", "headers-json", "json", "env"] as const;
const VALUES = ["--min-ttl", "--profile", "--scope"];
/** They decide about a login and its messages. */
const SWITCHES = ["--login", "--no-login", "--no-input", "--quiet", "-q"];

interface Arguments {
  url: string;
  /** The value of the command's own flag. */
  own: string | undefined;
  minTtl: number | undefined;
  scope: string[] | undefined;
  profile: { profile?: string };
}

/** The arguments of a command with one flag of its own; an ambiguous or wrong one is left to the parser. */
export function readArguments(args: readonly string[], own: string): Arguments | undefined {
  if (args.includes("--login") && args.includes("--no-login")) return undefined;
  const values = new Map<string, string>();
  const operands: string[] = [];
  for (let at = 0; at < args.length; at++) {
    const word = args[at] ?? "";
    if (SWITCHES.includes(word)) continue;
    const [, name = word, inline] = /^(--[a-z-]+)=(.*)$/s.exec(word) ?? [];
    if (name === own || VALUES.includes(name)) {
      const value = inline ?? args[++at] ?? "";
      if (values.has(name) || value === "" || value.startsWith("-")) return undefined;
      values.set(name, value);
    } else operands.push(word);
  }
  // Flags that are not known here are among them.
  const [url] = operands;
  const minTtl = values.get("--min-ttl");
  if (url === undefined || operands.length > 1 || (minTtl !== undefined && !/^\d{1,9}$/.test(minTtl))) return undefined;
  const profile = values.get("--profile");
  return {
    url,
    own: values.get(own),
    minTtl: minTtl === undefined ? undefined : Number(minTtl),
    scope: values.get("--scope")?.split(" ").filter(Boolean),
    profile: profile === undefined ? {} : { profile },
  };
}

/** Has the whole program report why stdout cannot be written; by then the stream itself only reports that it is closed. */
async function reportFailure(error: unknown, argv: readonly string[], host: Host): Promise<number> {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : new Error(String(error));
  const { Writable } = process.getBuiltinModule("node:stream");
  const program = await import("../groups/tokens.js");
  const stdout = new Writable({ write: (_chunk, _encoding, done) => done(cause) });
  const withFailedOutput = new Proxy(host, {
    get: (target, name) => (name === "stdout" ? stdout : Reflect.get(target, name)),
  });
  return program.run(argv, withFailedOutput, program.commands);
}
