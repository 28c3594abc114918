import { AgentAuthError } from "../../errors.js";
import { quote, shellWord } from "../../redact.js";
import type { DpopPolicy } from "../dpop/dpop.js";
import type { GrantKey } from "../grant/grant-store.js";

/** What a sign-in has to be like for its token to be good for what was asked. */
export interface LoginWish {
  /** Scopes, separated by blanks. */
  scope?: string | undefined;
  /** Whether its tokens are bound to a key. */
  dpop?: DpopPolicy | undefined;
}

/** The error for a server that needs a person: it names the profile and the command. */
export function loginRequired(
  key: GrantKey,
  reason: string,
  { cause, ...wish }: LoginWish & { cause?: unknown } = {},
): AgentAuthError {
  const { profile, server, account } = key;
  const whose = account === undefined ? `profile ${profile}` : `profile ${profile}, account ${quote(account)}`;
  return new AgentAuthError("login_required", `sign-in is needed for ${quote(server)} (${whose}): ${reason}`, {
    class: "auth",
    hint: loginCommand(key, wish),
    cause,
  });
}

/** Whether scopes, of which servers have named some, belong in a command to paste: text that reads as one does not. */
function isHarmless(scope: string): boolean {
  return scope.split(" ").every((one) => /^[\w.:/][\w.:/-]*$/.test(one));
}

/** The command that signs in; with the scopes that it is for, where those are fit to be pasted. */
export function loginCommand(
  { profile, server, account }: GrantKey,
  { scope = "", dpop = "auto" }: LoginWish = {},
): string {
  const flags = [
    profile === "default" ? "" : ` --profile ${shellWord(profile)}`,
    account === undefined ? "" : ` --account-hint ${shellWord(account)}`,
    isHarmless(scope) ? ` --scope ${shellWord(scope)}` : "",
    dpop === "auto" ? "" : ` --dpop ${dpop}`,
  ];
  return `agentauth login ${shellWord(server)}${flags.join("")}`;
}
