import { AgentAuthError } from "../../../errors.js";
import { runnable, shellSyntax } from "../../../platform/shell.js";
import { quote } from "../../../redact.js";
import { formatError } from "../../output/errors.js";
import { agentMode } from "../../runtime/agent-mode.js";
import type { CommandContext } from "../../runtime/context.js";

/** Whether the command failed to start, rather than our own code before it. */
export function isStartFailure(error: unknown): boolean {
  return error instanceof Error && /^spawn\b/.test((error as NodeJS.ErrnoException).syscall ?? "");
}

/** Reports why a command did not start. @returns the exit code */
export async function reportStartFailure(
  command: string,
  cause: unknown,
  { io, redactor }: CommandContext,
): Promise<number> {
  const { code = "no reason reported" } = cause as NodeJS.ErrnoException;
  const { exitCode, what, hint } = explain(code);
  const message = `the command ${quote(command)} ${what} (${code})`;
  const error = new AgentAuthError("usage", message, { class: "usage", hint, cause });
  const json = io.env["AGENTAUTH_ERRORS"] === "json" || agentMode(io.env, io.stdout) !== undefined;
  const text = formatError(error, { json, colors: io.stderr.colors, redactor, exitCode });
  // If stderr is closed, the exit code alone reports the failure.
  await io.stderr.write(text).catch(() => {});
  return exitCode;
}

/** With the exit codes that `env` and shells use. */
function explain(code: string): { exitCode: number; what: string; hint?: string } {
  switch (code) {
    case "ENOENT":
    case "ENOTDIR": {
      const hint = `give the path of a program, or the name of one in PATH; for shell syntax: -- ${shellSyntax()}`;
      return { exitCode: 127, what: "is not found", hint };
    }
    case "EACCES":
    case "EPERM":
    case "ENOEXEC":
      return { exitCode: 126, what: "cannot be run", hint: `a program must be ${runnable()}` };
    default:
      return { exitCode: 125, what: "cannot be started" };
  }
}
