import { systemClock } from "../../../src/http/deadline.js";
import { AgentClient, type AgentClientOptions } from "../../../src/oauth/agent.js";
import { memoryStore } from "../../../src/store/memory.js";
import { TestLogin } from "../../helpers/login.js";
import { it as sandboxTest } from "../../sandbox/support.js";

/** Tests with a sandbox whose user logs in at once, and agents that share a store. */
export const it = sandboxTest
  .extend({ options: { devices: 0, autoApprove: "alice" } })
  .extend("login", () => new TestLogin())
  /** An agent by the sandbox's clock. */
  .extend("agent", ({ sandbox, login }) => {
    const store = memoryStore();
    const clock = { ...systemClock, epoch: () => sandbox.clock.now() };
    return (options: Partial<AgentClientOptions> = {}) => new AgentClient({ store, login, clock, ...options });
  })
  /** How many requests the sandbox received for an operation, such as `refresh_token`. */
  .extend(
    "count",
    ({ sandbox }) =>
      (operation: string) =>
        sandbox.requests.filter((request) => request.operation === operation).length,
  );
