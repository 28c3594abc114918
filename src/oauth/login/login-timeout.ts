import { AgentAuthError } from "../../errors.js";

/** Default milliseconds for the user to log in. */
export const DEFAULT_LOGIN_TIMEOUT_MS = 300_000;

/** The error for a login that the user did not finish. */
export function timeoutError(resource: string, seconds: number): AgentAuthError {
  return new AgentAuthError("timeout", `the login was not finished within ${formatSeconds(seconds)}`, {
    class: "auth",
    hint: "log in again; the option loginTimeoutMs allows more time",
    remedy: { action: "login", server: resource, option: "loginTimeoutMs" },
  });
}

/** A time span as text. */
export function formatSeconds(seconds: number): string {
  const [count, unit] = seconds >= 120 ? [Math.floor(seconds / 60), "minute"] : [Math.round(seconds), "second"];
  return `${count} ${unit}${count === 1 ? "" : "s"}`;
}
