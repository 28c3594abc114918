import { AgentAuthError, isAgentAuthError } from "../../errors.js";

/** The error for a server that answers requests without a token, and names no issuer. */
export function loginNotRequired(server: string): AgentAuthError {
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
