import { AgentAuthError, isAgentAuthError } from "../../errors.js";
import { quote } from "../../redact.js";

/** The error for a server that answers requests without a token, and names no issuer. */
export function loginNotRequiredError(server: string): AgentAuthError {
  return new AgentAuthError("login_not_required", `${server} requires no login, so there is no token`, {
    class: "auth",
    hint: "send the requests without a token, as fetch() does",
    remedy: { action: "connect", server },
  });
}

/** Whether an error is that of a server without a login. */
export function isLoginNotRequired(error: unknown): boolean {
  return isAgentAuthError(error) && error.code === "login_not_required";
}

/** The error for an address without an MCP server. */
export function nothingThereError(mcpUrl: string): AgentAuthError {
  const message = `nothing is at ${quote(mcpUrl)}: it answered HTTP 404`;
  const hint = "check the path of the address";
  return new AgentAuthError("not_found", message, { class: "remote", status: 404, url: mcpUrl, hint });
}

/** Whether an error is that of an address without an MCP server. */
export function isNothingThere(error: unknown): boolean {
  return isAgentAuthError(error) && error.code === "not_found";
}

/** Takes a login for required where a server did not answer; throws where there is no server. */
export function requiredUnlessAbsent(error: unknown): true {
  if (isNothingThere(error)) throw error;
  return true;
}
