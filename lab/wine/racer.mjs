// One of the processes that refresh a login at the same time: node.exe with the built package. Its argument is JSON: the
// folder of the store, the MCP server and the generation at which to stop. It prints each token's generation on a line,
// and "reset" where a connection that was idle closed under the request: on a loaded machine the turn of a process takes as
// long as the server keeps a connection. The store marks that, as a generation without a new token.
import { setTimeout as sleep } from "node:timers/promises";
import { AgentClient, fileStore, isAgentAuthError } from "../stress/dist.mjs";

const { home, server, until } = JSON.parse(process.argv[2]);
const store = fileStore(home);
const login = {
  open() {
    throw new Error("the login was lost");
  },
};
const agent = new AgentClient({ store, login });
const key = { profile: "default", server };

for (let generation = 0; generation < until; ) {
  try {
    await agent.token(server, { forceRefresh: true });
    generation = (await store.read(key)).generation;
    console.log(generation);
  } catch (error) {
    if (!isAgentAuthError(error) || error.code !== "connection_reset") throw error;
    console.log("reset");
    await sleep(500);
  }
}
process.exit(0);
