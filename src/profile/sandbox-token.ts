import { AgentAuthError } from "../errors.js";
import { isLoopbackHost } from "../http/address.js";
import { quote } from "../redact.js";
import { readSandboxState } from "./sandbox-state.js";
import type { Sourced } from "./settings.js";

/** The prefix of every token of the sandbox. */
const SANDBOX_PREFIX = "sandbox_";

/**
 * Checks that a token and an address belong to the same world: the sandbox's tokens go to this machine only, and the
 * running sandbox is given no other.
 *
 * @returns the token
 * @throws `AgentAuthError` `refused`; nothing was sent
 */
export function keepApart({ value: token, source }: Sourced, baseUrl: Sourced, home: string): string {
  const { hostname, origin } = new URL(baseUrl.value);
  if (!isLoopbackHost(hostname)) {
    if (!token.startsWith(SANDBOX_PREFIX)) return token;
    throw refused(
      `the API token (${source}) is a sandbox's, and ${quote(baseUrl.value)} (${baseUrl.source}) is no sandbox`,
      "give the token of this service, or use the sandbox with --profile sandbox",
    );
  }
  const sandbox = readSandboxState(home);
  if (token.startsWith(SANDBOX_PREFIX) || sandbox === undefined || new URL(sandbox.base_url).origin !== origin)
    return token;
  throw refused(
    `the API token (${source}) is not the sandbox's, and ${quote(baseUrl.value)} (${baseUrl.source}) is a sandbox`,
    "unset AGENTAUTH_API_TOKEN for the sandbox, whose own token comes with --profile sandbox",
  );
}

function refused(message: string, hint: string): AgentAuthError {
  return new AgentAuthError("bad_address", message, { class: "refused", hint });
}
