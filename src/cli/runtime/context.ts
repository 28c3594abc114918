import type { Writable } from "node:stream";
import { AgentAuthError } from "../../errors.js";
import type { Redactor } from "../../redact.js";
import { readConfig } from "../config/file.js";
import { homeFolder } from "../config/home.js";
import { resolveSettings, type SettingFlags, type Settings } from "../config/settings.js";
import type { Sourced } from "../config/sourced.js";
import type { Io } from "../io/io.js";

/** The flags that every command knows, as commander names them. */
export interface GlobalFlags extends SettingFlags {
  timeout?: number;
  retries?: number;
  proxy?: string;
  caFile?: string;
  clientCert?: string;
  clientKey?: string;
  verbose?: boolean;
  debug?: boolean;
  quiet?: boolean;
  color?: boolean;
  input?: boolean;
}

/** Our own process, lent to a command that runs another program in its place. */
export interface LentProcess {
  /** For bytes that are passed on as they are. */
  readonly stdout: Writable;
  /** Likewise. */
  readonly stderr: Writable;
  /** The environment without our secrets, empty variables included. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** SIGINT, SIGTERM and SIGHUP end this run again. */
  giveBack(): void;
  /** Ends the process at once, where a reader that has stopped reading would keep it for ever. */
  exit(code: number): never;
}

/** What a command works with beside its own options. */
export interface Deps {
  readonly io: Io;
  /** Fires on SIGINT, SIGTERM and SIGHUP. */
  readonly signal: AbortSignal;
  /** The command line as it was typed, without the program's name. */
  readonly argv: readonly string[];
  readonly redactor: Redactor;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** The error with the flags of this command line in its hint, where that is the command that signs in. */
  readonly withGivenFlags?: (error: AgentAuthError) => AgentAuthError;
  /** Leaves signals to the caller: they neither fire {@link Deps.signal} nor end the run until it gives back. */
  readonly lend: () => LentProcess;
}

/** Whether a person may be asked, or a browser opened: neither the flag nor the variable says no. */
export function mayAsk({ input }: Pick<GlobalFlags, "input">, { env }: Pick<Io, "env">): boolean {
  return input !== false && !env["AGENTAUTH_NO_INPUT"];
}

/** The folder of our files in this run. */
export function homeOf(deps: Deps): string {
  return homeFolder(deps.io.env);
}

/** Every setting of this run with its source. */
export function settingsOf(flags: SettingFlags, deps: Deps): Settings {
  const home = homeOf(deps);
  return resolveSettings(flags, deps.io.env, readConfig(home), home);
}

/**
 * An identifier is sent as it is: a control character in it can only be a mistake of the caller's.
 *
 * @throws `AgentAuthError` `usage`
 */
export function checkIdentifier(value: string, source: string): void {
  if (!/\p{Cc}|\ufffd/u.test(value)) return;
  throw new AgentAuthError("usage", `${source} has a control character or broken UTF-8 in it`, { class: "usage" });
}

/**
 * The scope of a list: the flag, else the profile's default.
 *
 * @throws `AgentAuthError` `usage` that names the flag and the setting
 */
export function requireScope(name: "account" | "domain" | "pool", value: Sourced | undefined, command: string): string {
  if (value) {
    checkIdentifier(value.value, value.source);
    return value.value;
  }
  throw new AgentAuthError("usage", `no ${name} is named`, {
    class: "usage",
    hint: `agentauth ${command} --${name} <${name}_id>, or once for all: agentauth config set ${name} <${name}_id>`,
  });
}
