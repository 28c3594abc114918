import { AgentAuthError } from "../../../errors.js";
import { runnable, shellSyntax } from "../../../platform/shell.js";
import { quote } from "../../../redact.js";
import { formatError } from "../../output/errors.js";
import { agentMode } from "../../runtime/agent-mode.js";
import type { CommandContext } from "../../runtime/context.js";

/** The exit codes of a command that did not start, as `env` and shells use them. */
const NOT_STARTED = { failed: 125, notExecutable: 126, notFound: 127 } as const;

const NOT_FOUND = new Set(["ENOENT", "ENOTDIR"]);
const NOT_EXECUTABLE = new Set(["EACCES", "EPERM", "ENOEXEC"]);

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
  const { exitCode, message, hint } = explain(command, (cause as NodeJS.ErrnoException).code ?? "");
  const error = new AgentAuthError("usage", message, { class: "usage", hint, cause });
  const json = io.env["AGENTAUTH_ERRORS"] === "json" || agentMode(io.env, io.stdout) !== undefined;
  const text = formatError(error, { json, colors: io.stderr.colors, redactor, exitCode });
  // If stderr is closed, the exit code alone reports the failure.
  await io.stderr.write(text).catch(() => {});
  return exitCode;
}

function explain(command: string, code: string): { exitCode: number; message: string; hint?: string } {
  const name = quote(command);
  if (NOT_FOUND.has(code)) {
    const hint = `give the path of a program, or the name of one in PATH; for shell syntax: -- ${shellSyntax()}`;
    return { exitCode: NOT_STARTED.notFound, message: `the command ${name} is not found (${code})`, hint };
  }
  if (NOT_EXECUTABLE.has(code)) {
    const hint = `a program must be ${runnable()}`;
    return { exitCode: NOT_STARTED.notExecutable, message: `the command ${name} cannot be run (${code})`, hint };
  }
  return {
    exitCode: NOT_STARTED.failed,
    message: `the command ${name} cannot be started (${code || "no reason reported"})`,
  };
}
