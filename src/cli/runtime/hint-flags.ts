import type { Command, Option } from "commander";
import type { AuthorizationParams } from "../../oauth/model/authorization-params.js";
import { paramFlags } from "./flag-text.js";

/** What a sign-in depends on, beside where and by whom the command is run. No value of these is a secret. */
const OF_LOGIN: ReadonlySet<string> = new Set([
  ...["--profile", "--proxy", "--ca-file", "--use-system-ca", "--client-cert", "--client-key"],
  ...["--client-id", "--client-secret-file", "--private-key", "--key-id", "--client-metadata-url"],
  ...["--client-name"],
  ...["--issuer", "--trust-named-issuer"],
  ...["--scope", "--resource", "--resource-metadata", "--account-hint", "--dpop"],
  ...["--flow", "--browser", "--redirect-host", "--redirect-port", "--login-timeout"],
  ...["--allow-missing-pkce-metadata", "--allow-private-network", "--allow-cross-origin-metadata"],
  ...["--allow-cross-origin-endpoints", "--legacy-discovery", "--strict-resource", "--same-origin-endpoints"],
  ...["--accept-token-type", "--authorize-param"],
]);
/** With another heading a flag of the same name means something else: the scope of a token that is exchanged. */
const HEADINGS = /^(?:Login|Security policy|The client|Service|Network)/;

/** The flags of a login as they were typed, each with its value: without them the hint would log in another client. */
export function givenLoginFlags(command: Command): string[][] {
  const own = command.options.flatMap((option) => typed(option, command));
  return command.parent ? [...own, ...givenLoginFlags(command.parent)] : own;
}

function typed(option: Option, command: Command): string[][] {
  const { long, helpGroupHeading = "" } = option;
  // The second step of a login in two steps: another login starts with the first step.
  if (long === "--wait" && typeof command.getOptionValue("wait") === "string") return [["--no-wait"]];
  if (!long || !OF_LOGIN.has(long) || !HEADINGS.test(helpGroupHeading)) return [];
  const name = option.attributeName();
  if (command.getOptionValueSource(name) !== "cli") return [];
  const value: unknown = command.getOptionValue(name);
  if (long === "--authorize-param") return paramFlags(value as AuthorizationParams);
  return [value === true ? [long] : [long, String(value)]];
}
