import type { Readable } from "node:stream";
import { terminalLogin } from "../../login/terminal.js";
import type { LoginMethod } from "../../oauth/login/login-method.js";
import type { Io } from "../io/io.js";
import { agentMode } from "../runtime/agent-mode.js";
import { type ContextFlags, mayAsk, type RunContext } from "../runtime/context.js";
import { fill } from "../runtime/help/text.js";
import { flagText } from "../runtime/pasted-words.js";
import { confirm } from "./confirm.js";
import { loginDisplay } from "./login-display.js";

/**
 * How the user logs in, by the flags. Where no prompt is allowed, the URL is printed all the same and the callback
 * waited for: the reader may open it elsewhere.
 *
 * @param input where a callback is pasted into; default: stdin, where the user may be asked
 */
export function loginMethod(
  flags: Omit<ContextFlags, "output">,
  { io, signals }: Pick<RunContext, "io" | "signals">,
  input?: Readable,
): LoginMethod {
  const isAsked = mayAsk(flags, io);
  const asked = isAsked && (io.stdin.isTTY || flags.flow === "paste") ? io.stdin.stream : undefined;
  return terminalLogin({
    // Without the URL there is no login, also with --quiet.
    say: (text) => io.with({ quiet: false }).say(fitted(text, io)),
    env: io.env,
    flow: flags.flow === "paste" ? "paste" : "browser",
    browser: isAsked ? flags.browser : "none",
    display: mayConfirm(flags, io) ? loginDisplay(io) : undefined,
    optionText: flagText,
    redirectHost: flags.redirectHost,
    redirectPort: flags.redirectPort,
    loginTimeoutSeconds: flags.loginTimeout,
    confirm: mayConfirm(flags, io) ? (question, signal) => confirm(io, fitted(question, io), signal) : undefined,
    onInterrupt: () => signals.raise("SIGINT"),
    input: input ?? asked,
  });
}

/** Breaks lines between words for a terminal. An indented line is an address or a command to copy: it stays a line. */
function fitted(text: string, { stderr }: Pick<Io, "stderr">): string {
  if (!stderr.isTTY) return text;
  const lines = text.split("\n");
  return lines.flatMap((line) => (line.startsWith(" ") ? line : fill(line, stderr.columns))).join("\n");
}

/** Whether a user reads stderr and can answer; an agent can run us in a terminal that no user reads. */
export function mayConfirm(flags: Pick<ContextFlags, "input">, io: Io): boolean {
  return mayAsk(flags, io) && io.stdin.isTTY && io.stderr.isTTY && agentMode(io.env, io.stdout) === undefined;
}
