import { AgentAuthError } from "../errors.js";

/** The error for a local file that cannot be used, with the system's reason. */
export function storeError(what: string, cause: unknown, hint?: string): AgentAuthError {
  const reason = (cause as NodeJS.ErrnoException | undefined)?.code;
  return new AgentAuthError("store_failed", reason ? `${what} (${reason})` : what, { class: "store", hint, cause });
}
