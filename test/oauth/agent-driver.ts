import { isAgentAuthError } from "../../src/errors.js";
import { AgentClient } from "../../src/oauth/agent.js";
import { fileStore } from "../../src/store/file/file.js";
import { TestLogin } from "../helpers/login.js";

/** What a separate process with an agent does. */
export interface AgentJob {
  folder: string;
  mcpUrl: string;
  work: "login" | "refresh";
}

const { folder, mcpUrl, work } = JSON.parse(process.argv[2] ?? "") as AgentJob;
const login = new TestLogin();
const agent = new AgentClient({ store: fileStore(folder), ...(work === "login" && { login }) });
const say = (event: string, more: object = {}) => process.send?.({ event, ...more, opened: login.opened.length });

say("started");
try {
  const { value } = await (work === "login" ? agent.token(mcpUrl) : agent.token(mcpUrl, { forceRefresh: true }));
  say("ended", { value });
} catch (error) {
  say("ended", { error: isAgentAuthError(error) ? error.toJSON() : String(error) });
}
process.disconnect?.();
