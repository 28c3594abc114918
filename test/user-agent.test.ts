import { expect, it } from "vitest";
import { createBroker } from "../src/broker/broker.js";
import { openSource } from "../src/profile/assertion-sources.js";
import { type Scene, startScene } from "./helpers/issuer.js";
import { startServer } from "./helpers/server.js";
import { startSigner } from "./resource-server/support.js";

/** What a firewall in front of each server sees. */
type Sent = readonly { url: string; headers: Record<string, unknown> }[];

const withLogin = async (
  work: (scene: Scene, agent: ReturnType<Scene["agent"]>) => Promise<unknown>,
): Promise<Sent> => {
  const scene = await startScene();
  const agent = scene.agent();
  await agent.login(scene.mcp.url);
  await work(scene, agent);
  return [...scene.issuer.requests, ...scene.mcp.requests];
};

/** Everything in the package that sends requests, with the classes and the `fetch` of Node. */
const senders: Record<string, () => Promise<Sent>> = {
  "a login, requests with its token, and its end": () =>
    withLogin(async ({ mcp }, agent) => {
      await agent.fetch(mcp.url);
      await agent.fetch(new Request(mcp.url, { method: "POST", body: "{}" }));
      await agent.introspect(mcp.url);
      await agent.disconnect(mcp.url);
    }),
  "a provider for the official SDK": () =>
    withLogin(async ({ mcp }, agent) => {
      const provider = agent.authProvider(mcp.url);
      await provider.token();
      await provider.onUnauthorized({ response: new Response(null, { status: 401 }) });
    }),
  "a broker whose client names itself to no server": () =>
    withLogin(async ({ mcp }, agent) => {
      const policy = { grants: { mcp: { server: mcp.url } }, clients: { job: { listen: "127.0.0.1:0" } } };
      const broker = createBroker(agent, policy);
      await broker.fetch(new Request("http://broker/mcp", { method: "POST", body: "{}" }), "job");
      await broker.fetch(new Request("http://broker/mcp"), "job");
    }),
  "a resource server that reads keys": async () => {
    const signer = await startSigner();
    await signer.server().verify(await signer.sign());
    return signer.issuer.requests;
  },
  "a resource server that introspects": async () => {
    const signer = await startSigner();
    signer.issuer.routes["/pool/introspect"] = { json: { active: false } };
    const introspection = { clientId: "resource", clientSecret: "a-secret" };
    await signer.server({ introspection }).ask("an-opaque-token");
    return signer.issuer.requests;
  },
  "a source of assertions": async () => {
    const { origin, requests } = await startServer((response) => response.end("an.assertion.x"));
    const host = { env: {}, fetch: globalThis.fetch, from: "--assertion" };
    const { assertion } = openSource(`url:${origin}/token`, {}, host);
    await assertion({ audience: "a", signal: new AbortController().signal } as never);
    return requests;
  },
};

it.each(Object.entries(senders))("%s: every request names its sender", async (_name, send) => {
  const sent = (await send()).filter(({ url }) => !url.includes("/authorize"));
  expect(sent.length).toBeGreaterThan(0);
  for (const { url, headers } of sent)
    expect([url, headers["user-agent"]]).toEqual([url, expect.stringMatching(/agentauth\//)]);
});
