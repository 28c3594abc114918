import { AgentAuthError } from "../../errors.js";
import type { Sourced } from "../runtime/settings.js";

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
