import type { Command, Option } from "commander";
import { usageError } from "../../errors.js";
import type { HandOverFormats } from "../../oauth/hand-over.js";
import type { LoginCommand, LoginFlags } from "../../profile/login-settings.js";
import { flagFor, loginSettings, wholeNumber } from "../../profile/login-settings.js";
import type { GlobalFlags, OutputFlags } from "./global.js";
import { addMachineGrantFlags, type MachineGrantFlags } from "./grant.js";
import { addFlags, type FlagRow } from "./values.js";

/** The flags of every command that may log in. */
export interface AgentFlags extends GlobalFlags, MachineGrantFlags, Omit<LoginFlags, keyof GlobalFlags> {
  login?: boolean;
}

/** The flag of the account, and whether the command may log in, for commands that use what is stored for the server. */
export function addStoredLoginFlags(command: Command): Command {
  refuseLoginConflict(command);
  return addFlags(addLoginSettings(command, "stored"), undefined, [ACCOUNT_HINT, ...LOGIN_SWITCH]);
}

/** Adds the settings of a login, and of a machine grant, that a command has as flags. */
export function addAgentFlags(command: Command, as: "login" | "token"): Command {
  addMachineGrantFlags(addLoginSettings(command, as));
  refuseLoginConflict(command);
  return command;
}

/** The flags of {@link LoginFlags} that belong to a login: a hint repeats them. */
const loginOptions = new WeakSet<Option>();

/** Whether a flag is a setting of a login. */
export function isLoginOption(option: Option): boolean {
  return loginOptions.has(option);
}

export function addLoginSettings(command: Command, as: LoginCommand): Command {
  for (const { name, value, description, group, on, values } of loginSettings()) {
    if (!on.includes(as)) continue;
    const flags = value === undefined ? flagFor(name) : `${flagFor(name)} ${value}`;
    addFlags(command, group, [[flags, description, values] as FlagRow]);
    loginOptions.add(command.options.at(-1) as Option);
  }
  return command;
}

/** For commander, `--login` and `--no-login` are one option, and the last one wins. */
function refuseLoginConflict(command: Command): void {
  const seen = new Set<string>();
  for (const name of ["login", "no-login"])
    command.on(`option:${name}`, () => {
      if (seen.add(name).size === 1) return;
      throw usageError("--login and --no-login do not go together", "leave out one of the two");
    });
}

/** The flags that decide whether a command may log in. */
export const LOGIN_SWITCH: readonly FlagRow[] = [
  ["--login", "Log in if needed, even without a terminal"],
  ["--no-login", "Never log in"],
];

/** The flag of the account, for commands that use a stored login. */
export const ACCOUNT_HINT = [
  "--account-hint <account>",
  "Account to use, if several are logged in at the server",
] as const;

export const MIN_TTL: FlagRow = [
  "--min-ttl <seconds>",
  "Minimum remaining lifetime in seconds, at most 90 % of the token's lifetime (default: 60)",
  wholeNumber(0),
];

export const TOKEN_FORMATS = [
  "raw",
  "header",
  "headers-json",
  "json",
  "env",
  "powershell",
  "cmd",
  "k8s",
  "git",
  "bazel",
] as const;

/** The hidden command of the process that waits for a callback between the two steps of a login. */
export const RECEIVE_CALLBACK = "receive-callback";

export interface TokenFlags extends Omit<AgentFlags, "output"> {
  url: string;
  /** The operation that git or bazel appends. */
  operation?: string;
  format?: (typeof TOKEN_FORMATS)[number];
  minTtl?: number;
  forceRefresh?: boolean;
  /** Whether an AI agent runs the command without a flag that reaches the user: login starts, but does not wait. */
  isForAgent?: boolean;
  /** `--no-wait` gives false; `--wait <id>` gives the id. */
  wait?: boolean | string;
  /** The callback of a login that is finished; `-` reads it from stdin. */
  callbackUrl?: string;
  output?: "text" | "json";
  json?: boolean;
  /** Whether the login is for a hosted agent; a text is the file that gets it. */
  handOver?: true | string;
  handOverFormat?: keyof HandOverFormats;
  showSecrets?: boolean;
}

/** Options of the commands about stored logins. */
export interface StoredLoginFlags extends AgentFlags, OutputFlags {
  url?: string;
  all?: boolean;
  /** The file of a login that was handed over; `-` is stdin. */
  handOver?: string;
}
