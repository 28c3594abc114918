import type { AgentAuthError } from "../../errors.js";
import type { CommandContext } from "../runtime/context.js";

/** What cannot be read is there all the same, with its tokens. */
export function warnOfUnusable(errors: readonly AgentAuthError[], { io, redactor }: CommandContext): void {
  for (const { message, hint } of errors) {
    io.warn(`a login that is kept here cannot be used: ${redactor.redact(message)}`);
    if (hint !== undefined) io.say(`hint: ${hint}`);
  }
}
