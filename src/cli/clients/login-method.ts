import { terminalLogin } from "../../login/terminal.js";
import type { LoginMethod } from "../../oauth/login/login-method.js";
import type { Io } from "../io/io.js";
import { agentMode } from "../runtime/agent-mode.js";
import { type ContextFlags, mayAsk, type RunContext } from "../runtime/context.js";
import { flagText } from "../runtime/hints.js";
import { confirm } from "./confirm.js";

/**
 * How the user logs in, by the flags. Where no prompt is allowed, the URL is printed all the same and the callback
 * waited for: the reader may open it elsewhere.
 */
export function loginMethod(
  flags: Omit<ContextFlags, "output">,
  { io, signals }: Pick<RunContext, "io" | "signals">,
): LoginMethod {
  const isAsked = mayAsk(flags, io);
  return terminalLogin({
    // Without the URL there is no login, also with --quiet.
    say: (text) => io.with({ quiet: false }).say(text),
    env: io.env,
    flow: flags.flow === "paste" ? "paste" : "browser",
    browser: isAsked ? flags.browser : "none",
    optionText: flagText,
    redirectHost: flags.redirectHost,
    redirectPort: flags.redirectPort,
    loginTimeoutSeconds: flags.loginTimeout,
    confirm: mayConfirm(flags, io) ? (question, signal) => confirm(io, question, signal) : undefined,
    onInterrupt: () => signals.raise("SIGINT"),
    input: isAsked && (io.stdin.isTTY || flags.flow === "paste") ? io.stdin.stream : undefined,
  });
}

/** Whether a user can answer a question on stderr; an agent can run us in a terminal that no user reads. */
export function mayConfirm(flags: Pick<ContextFlags, "input">, io: Io): boolean {
  return mayAsk(flags, io) && io.stdin.isTTY && io.stderr.isTTY && agentMode(io.env, io.stdout) === undefined;
}
