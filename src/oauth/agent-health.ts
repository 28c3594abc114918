import { isAgentAuthError } from "../errors.js";
import type { AgentContext } from "./agent-context.js";

/** Whether a client can do its work. */
export interface AgentHealth {
  /** Whether there are no errors. */
  ready: boolean;
  /** Where the logins are stored, without credentials. */
  storedIn: string;
  /** Why the client cannot work: the store does not answer or must not be used, or the client is closed. */
  errors: string[];
  /** Why logins may be lost although they were stored. */
  risks: string[];
}

/** Asks the store, and reports what it says. */
export async function healthOf(
  { options, pending }: AgentContext,
  signal: AbortSignal | undefined,
): Promise<AgentHealth> {
  const { store } = options;
  const closed = pending.isClosed ? ["the client is closed"] : [];
  const report = { storedIn: store.location, risks: [] };
  try {
    const health = (await store.health?.({ signal })) ?? { errors: [], risks: [] };
    // A store that cannot say how it is can be read, or cannot.
    if (store.health === undefined) await store.read({ profile: "health", server: "https://health.invalid/" });
    const errors = [...closed, ...health.errors];
    return { ...report, risks: [...health.risks], errors, ready: errors.length === 0 };
  } catch (error) {
    if (!isAgentAuthError(error) || error.class === "aborted") throw error;
    return { ...report, errors: [...closed, error.message], ready: false };
  }
}
