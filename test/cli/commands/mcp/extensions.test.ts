import { once } from "node:events";
import { expect, it } from "vitest";
import { VERSION } from "../../../../src/http/version.js";
import { declareExtension } from "../../../../src/mcp/json-rpc.js";
import { Secret } from "../../../../src/redact.js";
import { fileStore } from "../../../../src/store/file/file.js";
import { collect, runCli, startCli, temporaryFolder, until } from "../../../helpers/cli.js";
import { madeGrant } from "../../../helpers/grant.js";
import { sendResult, startPlainServer } from "../../../mcp/plain-server.js";
import { HELLO } from "../../../mcp/stdio-host.js";

const CLIENT_CREDENTIALS = "io.modelcontextprotocol/oauth-client-credentials";
const MANAGED = "io.modelcontextprotocol/enterprise-managed-authorization";

/** A server at which a user and a machine are logged in, and the flags of the machine. */
async function startServer() {
  const server = await startPlainServer(({ id }, response) => sendResult(response, id, { tools: [] }));
  const home = temporaryFolder();
  const made = madeGrant({ server: server.url, resource: server.url, requestedScope: undefined });
  const tokens = { ...made.tokens, refreshToken: undefined, expiresAt: Date.now() + 3_600_000, obtainedAt: Date.now() };
  const client = { ...made.client, clientId: "c", authMethod: "client_secret_basic", clientSecret: undefined } as const;
  await fileStore(home).save({ ...made, tokens }, undefined);
  const account = "grant:client_credentials:c";
  const recipe = new Secret('{"grant":"client-credentials"}');
  await fileStore(home).save({ ...made, client, tokens, account, recipe }, undefined);
  const env = { AGENTAUTH_HOME: home, AGENTAUTH_CLIENT_SECRET: "machine-secret-1" };
  const machine = ["--grant", "client-credentials", "--client-id", "c", "--issuer", made.issuer];
  const stored = ["--account-hint", account];
  const declared = () =>
    server.requests.flatMap(({ body }) => {
      const { method, params } = JSON.parse(body || "{}") as { method?: string; params?: { capabilities?: unknown } };
      return method === "initialize" ? [params?.capabilities] : [];
    });
  return { server, env, machine, stored, declared };
}

it("mcp tools declares the extension of its grant, and none for a login", async () => {
  const { server, env, stored, declared } = await startServer();
  for (const flags of [[], stored]) {
    const { code, stderr } = await runCli(["mcp", "tools", server.url, "--no-login", ...flags], { env });
    expect([code, stderr]).toEqual([0, ""]);
  }
  const elicitation = { url: {} };
  expect(declared()).toEqual([{ elicitation }, { elicitation, extensions: { [CLIENT_CREDENTIALS]: {} } }]);
  const [first] = server.requests.filter(({ body }) => body.includes('"initialize"'));
  expect(JSON.parse(first?.body ?? "").params.clientInfo).toEqual({ name: "agentauth", version: VERSION });
  await server.close();
});

it("mcp proxy adds it to what the host declares", async () => {
  const { server, env, machine, declared } = await startServer();
  const hosts = { ...HELLO, capabilities: { roots: {}, extensions: { "io.example/ui": { a: 1 } } } };
  for (const flags of [[], machine]) {
    const run = startCli(["mcp", "proxy", server.url, ...flags], { env });
    const out = collect(run.stdout);
    run.stdin?.write(`${JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize", params: hosts })}\n`);
    await until(() => out().includes('"id":1'));
    const closed = once(run, "close");
    run.stdin?.end();
    await closed;
  }
  const extensions = { "io.example/ui": { a: 1 } };
  expect(declared()).toEqual([
    { roots: {}, extensions },
    { roots: {}, extensions: { ...extensions, [CLIENT_CREDENTIALS]: {} } },
  ]);
  await server.close();
});

it("each request without a session declares it as well, and nothing else does", () => {
  const capabilities = "io.modelcontextprotocol/clientCapabilities";
  const call = {
    jsonrpc: "2.0",
    id: 1,
    method: "tools/call",
    params: { name: "x", _meta: { [capabilities]: {}, a: 1 } },
  };
  expect(declareExtension(MANAGED, call as never)).toEqual({
    ...call,
    params: { name: "x", _meta: { a: 1, [capabilities]: { extensions: { [MANAGED]: {} } } } },
  });
  expect(declareExtension(undefined, call as never)).toBe(call);
  for (const params of [undefined, { name: "x" }, { name: "x", _meta: { a: 1 } }]) {
    const other = { jsonrpc: "2.0", id: 1, method: "tools/call", params };
    expect(declareExtension(MANAGED, other as never)).toBe(other);
  }
});
