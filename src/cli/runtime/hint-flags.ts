import type { Command, Option } from "commander";
import { type AgentAuthError, withHint } from "../../errors.js";
import { shellWord } from "../../redact.js";

/** What a sign-in depends on, beside where and by whom the command is run. No value of these is a secret. */
const OF_LOGIN: ReadonlySet<string> = new Set([
  ...["--profile", "--proxy", "--ca-file", "--client-cert", "--client-key"],
  ...["--client-id", "--client-secret-file", "--private-key", "--key-id", "--client-metadata-url"],
  ...["--issuer", "--trust-named-issuer"],
  ...["--scope", "--resource", "--account-hint", "--dpop"],
  ...["--flow", "--browser", "--redirect-host", "--redirect-port", "--login-timeout"],
  ...["--allow-missing-pkce-metadata", "--allow-private-network", "--allow-cross-origin-metadata"],
  ...["--allow-cross-origin-endpoints", "--legacy-discovery", "--strict-resource", "--same-origin-endpoints"],
]);
/** With another heading a flag of the same name means something else: the scope of a token that is exchanged. */
const HEADINGS = /^(?:Login|Security policy|The client|Service|Network)/;

const WORD = String.raw`(?:"[^"]*"|'[^']*'|\\.|[^\s"'\\])+`;
/** A hint that ends in the command that signs in, with whatever flags it has. */
const SIGNS_IN = new RegExp(String.raw`(?:^|: )agentauth login (?!<)${WORD}(?: --[\w-]+(?: (?!-)${WORD})?)*$`);

/**
 * The error with the flags that were given to a command in its hint, where that is the command that signs in: without
 * them it would sign in another client, by other rules.
 *
 * @param isForAgent whether a program that waits for the answer is to run it: it gets the login in two steps
 */
export function withHintFlags(error: AgentAuthError, command: Command, isForAgent = false): AgentAuthError {
  const { hint } = error;
  if (hint === undefined || !SIGNS_IN.test(hint)) return error;
  const all = [...given(command), ...(isForAgent ? [["--no-wait"], ["--json"]] : [])];
  const flags = all.filter(([name = ""]) => !` ${hint} `.includes(` ${name} `));
  return flags.length === 0 ? error : withHint(error, [hint, ...flags.flat().map(shellWord)].join(" "));
}

/** The flags of a sign-in as they were typed, each with its value. */
function given(command: Command): string[][] {
  const own = command.options.flatMap((option) => typed(option, command));
  return command.parent ? [...own, ...given(command.parent)] : own;
}

function typed(option: Option, command: Command): string[][] {
  const { long, helpGroupHeading = "" } = option;
  if (!long || !OF_LOGIN.has(long) || !HEADINGS.test(helpGroupHeading)) return [];
  const name = option.attributeName();
  if (command.getOptionValueSource(name) !== "cli") return [];
  const value: unknown = command.getOptionValue(name);
  return [value === true ? [long] : [long, String(value)]];
}
