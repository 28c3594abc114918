import type { AgentAuthError } from "../../errors.js";
import type { CommandContext } from "../runtime/context.js";
import { cliHint } from "../runtime/hints.js";

/** Warns of stored logins that cannot be read: they are still there, with their tokens. */
export function warnOfUnusable(errors: readonly AgentAuthError[], { io, redactor }: CommandContext): void {
  for (const { message, hint } of errors.map((error) => cliHint(error))) {
    io.warn(`a stored login cannot be used: ${redactor.redact(message)}`);
    if (hint !== undefined) io.say(`hint: ${hint}`);
  }
}
