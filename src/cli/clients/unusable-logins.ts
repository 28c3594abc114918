import type { AgentAuthError } from "../../errors.js";
import type { Deps } from "../runtime/context.js";

/** What cannot be read is there all the same, with its tokens. */
export function tellUnusable(errors: readonly AgentAuthError[], { io, redactor }: Deps): void {
  for (const { message, hint } of errors) {
    io.warn(`a login that is kept here cannot be used: ${redactor.redact(message)}`);
    if (hint !== undefined) io.say(`hint: ${hint}`);
  }
}
