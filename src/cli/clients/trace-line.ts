import type { TraceEntry } from "../../oauth/http/trace.js";

export function traceLine({ step, method, url, status, used, why }: TraceEntry): string {
  return `${used ? "+" : "-"} ${step}: ${method} ${url}${status === undefined ? "" : ` ${status}`}: ${why}`;
}
