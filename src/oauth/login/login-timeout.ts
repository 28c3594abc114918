import { AgentAuthError } from "../../errors.js";
import { shellWord } from "../../redact.js";

/** Milliseconds that the user may take to log in, where nobody says otherwise. */
export const DEFAULT_LOGIN_TIMEOUT_MS = 300_000;

/** Nobody came back. */
export function timeoutError(resource: string, seconds: number): AgentAuthError {
  return new AgentAuthError("timeout", `nobody finished the sign-in within ${duration(seconds)}`, {
    class: "auth",
    hint: `run agentauth login ${shellWord(resource)} again; --login-timeout <seconds> gives more time`,
  });
}

/** A span as people say it. */
export function duration(seconds: number): string {
  const [count, unit] = seconds >= 120 ? [Math.floor(seconds / 60), "minute"] : [Math.round(seconds), "second"];
  return `${count} ${unit}${count === 1 ? "" : "s"}`;
}
