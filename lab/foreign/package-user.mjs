// The built package at a peer: package-user.mjs <address> <tool> <options>, with an empty home. Prints each finished step as JSON; the
// runner compares what they found with what the command line found.
import { join } from "node:path";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const [address, tool, options] = process.argv.slice(2);
const { client: preRegistered, redirectPort, policy, usesOwnFetch } = JSON.parse(options);
const dist = new URL("../../dist/", import.meta.url);
const { AgentClient } = await import(new URL("index.js", dist));
const { createAgentClient, fileStore, terminalLogin } = await import(new URL("node.js", dist));

const step = (name, result) => console.log(JSON.stringify({ step: name, result }));
const login = terminalLogin({ say: (text) => console.error(text), env: process.env, redirectPort });
const store = fileStore(join(process.env.HOME, "package"));
// The proxies of the environment are those of the second alone.
const given = { store, login, client: preRegistered, policy };
const agent = usesOwnFetch ? createAgentClient(given) : new AgentClient(given);
step("login", (await agent.login(address)).server);
const first = await agent.token(address);
step("token", first.value);
const client = new Client({ name: "agentauth-foreign", version: "1.0.0" });
// The SDK follows redirects by itself, to an address below that of the server.
const sent = usesOwnFetch
  ? { fetch: (input, init) => agent.fetch(input, { ...init, server: address }) }
  : { authProvider: agent.oauthClientProvider(address) };
await client.connect(new StreamableHTTPClientTransport(new URL(address), sent));
step("list", (await client.listTools()).tools.map(({ name }) => name).join("\n"));
step("call", JSON.stringify(await client.callTool({ name: tool, arguments: {} })));
step("refresh", (await agent.token(address, { forceRefresh: true })).value);
step("call again", JSON.stringify(await client.callTool({ name: tool, arguments: {} })));
await client.close();
step("logout", JSON.stringify(await agent.disconnect(address)));
