import { expect, test } from "vitest";
import { ManagementClient } from "../../src/api/client.js";
import { AgentClient } from "../../src/oauth/agent.js";
import { type SandboxMachine, startSandbox } from "../../src/sandbox/index.js";
import { memoryStore } from "../../src/store/memory.js";
import { TestLogin } from "../helpers/login.js";

const CLIENTS = 50;
const SERVERS = 10;
const HOURS = 100;

test(`one login serves ${CLIENTS} clients at ${SERVERS} servers for ${HOURS} hours`, { timeout: 180_000 }, async () => {
  const size = { domains: 1, pools: SERVERS, devices: 1 };
  await using sandbox = await startSandbox({ autoApprove: true, machineGrants: true, ...size });
  const { clock, mcpUrl, ids, baseUrl, apiToken: token } = sandbox;
  const { idp, workloadClient } = sandbox.machine as SandboxMachine;
  const pools = await new ManagementClient({ baseUrl, token }).pools.list({ domain_id: ids.domain }).toArray();
  const servers = pools.map(({ id }) => ({ url: `${mcpUrl}/${id}`, issuer: sandbox.authUrl(id) }));
  const user = new TestLogin();
  const sleep = (ms: number) => new Promise<void>((resolve) => void setTimeout(resolve, Math.min(ms, 5)));
  const common = { store: memoryStore(), clock: { now: () => clock.now(), epoch: () => clock.now(), sleep } };
  const named = { issuer: idp.issuer, clientId: idp.nativeClient.clientId };
  await new AgentClient({ ...common, login: user, idp: named }).loginIdp();
  // The same client at each issuer, whom the user names once.
  const first = servers.map(({ url, issuer }) =>
    new AgentClient({ ...common, idp: named, client: { ...workloadClient, issuer } }).token(url),
  );
  await Promise.all(first);

  const crowd = Array.from({ length: CLIENTS }, () => new AgentClient({ ...common, idp: "stored" }));
  const refreshes = () => sandbox.requests.filter(({ operation }) => operation === "refresh_token");
  for (let hour = 1; hour <= HOURS; hour++) {
    // The id token and all access tokens are over.
    clock.advance(3_600_000);
    const given = crowd.flatMap((one) => servers.map(async ({ url }) => (await one.token(url)).value));
    expect(new Set(await Promise.all(given)).size).toBe(SERVERS);
    expect(refreshes()).toHaveLength(hour);
  }
  // A refresh token that is used twice would be refused, and end the login.
  const all = sandbox.requests.filter(({ path }) => path.endsWith("/token"));
  expect(new Set(all.map(({ status }) => status))).toEqual(new Set([200]));
  expect(all).toHaveLength(1 + HOURS + 2 * SERVERS * (HOURS + 1));
  expect(user.opened).toHaveLength(1);
});
