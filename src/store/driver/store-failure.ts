import { AgentAuthError, isAgentAuthError } from "../../errors.js";
import type { StoreDriver } from "./driver.js";

/** The error for an engine that did not answer in time. */
export function unanswered({ system, location }: StoreDriver, ms: number): AgentAuthError {
  const message = `${system} at ${location} did not answer in ${Math.round(ms / 100) / 10} s`;
  return new AgentAuthError("store_unavailable", message, { class: "unavailable" });
}

/** Whether the answer of an engine is missing: what was asked for may have happened. */
export function isUnanswered(error: unknown): boolean {
  return isAgentAuthError(error) && error.class === "unavailable";
}
