import { isAgentAuthError } from "../../../src/errors.js";
import { AgentClient } from "../../../src/oauth/agent.js";
import { fileStore } from "../../../src/store/file/file.js";
import { LOGIN_FLOWS } from "./login-flows.js";

/** What a separate process with an MCP SDK does. */
export interface SdkJob {
  folder: string;
  mcpUrl: string;
  /** The name of one of {@link LOGIN_FLOWS}. */
  way: string;
}

const { folder, mcpUrl, way } = JSON.parse(process.argv[2] ?? "") as SdkJob;
const agent = new AgentClient({ store: fileStore(folder) });
const connect = LOGIN_FLOWS.find(([name]) => name === way)?.[1];
const say = (event: string, more: object = {}) => process.send?.({ event, ...more });

process.once("message", async () => {
  try {
    const client = await connect?.(mcpUrl, agent);
    say("ended", { result: await client?.call("whoami") });
    await client?.close();
  } catch (error) {
    say("ended", { error: isAgentAuthError(error) ? error.toJSON() : String(error) });
  }
  process.disconnect?.();
});
say("started");
