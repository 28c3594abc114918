import { expect, it } from "vitest";
import { AgentAuthError } from "../src/index.js";
import { startScene } from "./helpers/issuer.js";
import { SampleService } from "./helpers/service.js";
import { startSigner } from "./resource-server/support.js";

it("the methods of an agent client work when they are passed on alone", async () => {
  const { mcp, agent, issuer } = await startScene();
  const {
    login,
    token,
    fetch,
    status,
    discover,
    introspect,
    exchange,
    disconnect,
    beginLogin,
    authProvider,
    oauthClientProvider,
  } = agent();
  await login(mcp.url);
  expect((await token(mcp.url)).resource).toBe(mcp.url);
  expect(await (await fetch(mcp.url)).json()).toEqual({ ok: true });
  const { token: providedToken } = authProvider(mcp.url);
  const { tokens } = oauthClientProvider(mcp.url);
  expect((await tokens())?.access_token).toBe(await providedToken());
  expect(await status(mcp.url)).toMatchObject([{ server: mcp.url, issuer: issuer.issuer }]);
  expect((await discover(mcp.url)).found?.issuer.issuer).toBe(issuer.issuer);
  expect((await beginLogin(mcp.url, "http://127.0.0.1:49152/callback")).issuer.issuer).toBe(issuer.issuer);
  expect(await introspect(mcp.url)).toMatchObject({ active: true });
  // The method that is not bound fails with a TypeError.
  await exchange(mcp.url, { audience: "https://api.example" }).catch((error: unknown) => {
    expect(error).toBeInstanceOf(AgentAuthError);
  });
  expect(await disconnect(mcp.url)).toMatchObject({ removed: true });
});

it("the methods of a management client work when they are passed on alone", async () => {
  const service = new SampleService(20);
  const { get, devices, pools } = service.client();
  const [listDevices, listPools, getDevice] = [devices.list, pools.list, devices.get];
  expect((await listDevices({ pool_id: "p" }).toArray()).map(({ id }) => id)).toEqual(service.ids());
  expect(await listPools({ domain_id: "d" }).first()).toMatchObject({ id: "dev_0" });
  expect(await getDevice({ pool_id: "p", id: "dev_3" })).toMatchObject({ id: "dev_3" });
  expect((await get("/api/v1/device")).status).toBe(200);
});

it("the methods of a resource server work when they are passed on alone", async () => {
  const signer = await startSigner();
  const { verify, protect, handleMetadata, metadata } = signer.server();
  expect(await verify(await signer.sign())).toMatchObject({ subject: "alice" });
  expect((await protect(() => new Response())(new Request(metadata().resource))).status).toBe(401);
  expect(handleMetadata(new Request(metadata().resource))).toBeUndefined();
});
