import type { TraceEntry } from "../../oauth/http/trace.js";

/** A step of the flow in a line. */
export function traceLine({ step, method, url, status, used, why }: TraceEntry): string {
  return `${used ? "+" : "-"} ${step}: ${method} ${url}${status === undefined ? "" : ` ${status}`}: ${why}`;
}
