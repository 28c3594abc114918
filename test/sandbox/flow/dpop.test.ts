import { Client, DpopSession, StreamableHTTPClientTransport, withDpop } from "@modelcontextprotocol/client";
import { generateKeyPair } from "dpop";
import { exportJWK } from "jose";
import * as oauth from "oauth4webapi";
import { describe, expect } from "vitest";
import { type Sandbox, startSandbox } from "../../../src/sandbox/index.js";
import { begin, discover, landing, REDIRECT_URI, register, rpc, TOKEN_EXCHANGE } from "../oauth/support.js";
import { it as base } from "../support.js";
import { ask, getReady, type Ready, whoAmI } from "./dpop-support.js";

const it = base.extend("options", { devices: 3, autoApprove: true });

async function prm(sandbox: Sandbox): Promise<Record<string, unknown>> {
  const response = await fetch(`${sandbox.origin}/.well-known/oauth-protected-resource/mcp`);
  return (await response.json()) as Record<string, unknown>;
}

const algorithms = async (sandbox: Sandbox) => (await discover(sandbox)).dpop_signing_alg_values_supported;
const challenge = async (sandbox: Sandbox) =>
  (await rpc(sandbox.mcpUrl, undefined, "tools/list")).headers.get("www-authenticate");

/** Signs in with a proof. */
async function logIn(sandbox: Sandbox, bound = false): Promise<Ready & { token: string; refresh: string }> {
  const ready = await getReady(sandbox, bound);
  const { body } = await ask(ready.as, ready.form, ready.keys);
  return { ...ready, token: body["access_token"] ?? "", refresh: body["refresh_token"] ?? "" };
}

const refreshForm = ({ client }: Ready, token: string) => ({
  grant_type: "refresh_token",
  client_id: client.client_id,
  refresh_token: token,
});

it("without the option nothing is said of bound tokens, and a proof is not looked at", async ({ start }) => {
  const sandbox = await start({});
  expect(await algorithms(sandbox)).toBeUndefined();
  expect(Object.keys(await prm(sandbox))).toEqual(["resource", "authorization_servers"]);
  expect(await challenge(sandbox)).not.toContain("DPoP");
  const { as, form, keys } = await getReady(sandbox);
  const { body } = await ask(as, form, keys);
  expect(body["token_type"]).toBe("Bearer");
  expect((await whoAmI(sandbox.mcpUrl, body["access_token"])).status).toBe(200);
  expect((await whoAmI(sandbox.mcpUrl, body["access_token"], keys)).status).toBe(401);
});

describe.each([false, true])("where bound tokens are supported, opaque: %s", (opaque) => {
  it("a proof gets one, which the MCP server takes with a proof of its key alone", async ({ start }) => {
    const sandbox = await start({ dpop: "supported", opaque });
    expect(await algorithms(sandbox)).toContain("ES256");
    expect((await prm(sandbox))["dpop_signing_alg_values_supported"]).toContain("ES256");
    expect(await challenge(sandbox)).toMatch(/^Bearer .*, DPoP algs="/);
    const { as, form, keys, jkt, client } = await getReady(sandbox);
    const { status, body } = await ask(as, form, keys);
    expect([status, body["token_type"]]).toEqual([200, "DPoP"]);
    const token = body["access_token"];
    const called = await whoAmI(sandbox.mcpUrl, token, keys);
    expect([called.status, await called.text()]).toEqual([200, expect.stringContaining("alice")]);
    expect((await whoAmI(sandbox.mcpUrl, token)).status).toBe(401);
    expect((await whoAmI(sandbox.mcpUrl, token, await generateKeyPair("ES256"))).status).toBe(401);
    const requested = new URLSearchParams({ token: token ?? "", client_id: client.client_id });
    const known = await fetch(as.introspection_endpoint ?? "", { method: "POST", body: requested });
    expect(await known.json()).toMatchObject({ active: true, token_type: "DPoP", cnf: { jkt } });
  });

  it("a request without a proof gets a bearer token", async ({ start }) => {
    const sandbox = await start({ dpop: "supported", opaque });
    const { as, form, keys } = await getReady(sandbox);
    const { body } = await ask(as, form);
    expect(body["token_type"]).toBe("Bearer");
    expect((await whoAmI(sandbox.mcpUrl, body["access_token"])).status).toBe(200);
    expect((await whoAmI(sandbox.mcpUrl, body["access_token"], keys)).status).toBe(401);
  });
});

describe("where bound tokens are supported", () => {
  it("a code that was asked for with a key is redeemed with that key", async ({ start }) => {
    const sandbox = await start({ dpop: "supported" });
    for (const keys of [undefined, await generateKeyPair("ES256")]) {
      const { as, form } = await getReady(sandbox, true);
      expect((await ask(as, form, keys)).body["error"]).toBe("invalid_grant");
    }
    expect((await logIn(sandbox, true)).token).not.toBe("");
  });

  it("the refresh token of a client without a secret is bound too, and rotates as any", async ({ start }) => {
    const sandbox = await start({ dpop: "supported" });
    const session = await logIn(sandbox);
    const { as, keys, refresh } = session;
    for (const other of [undefined, await generateKeyPair("ES256")]) {
      expect((await ask(as, refreshForm(session, refresh), other)).body["error"]).toBe("invalid_grant");
    }
    const renewed = await ask(as, refreshForm(session, refresh), keys);
    expect(renewed.body).toMatchObject({ token_type: "DPoP", refresh_token: expect.not.stringMatching(refresh) });
    expect((await whoAmI(sandbox.mcpUrl, renewed.body["access_token"], keys)).status).toBe(200);
    expect((await ask(as, refreshForm(session, refresh), keys)).body["error"]).toBe("invalid_grant");
    const ended = await ask(as, refreshForm(session, renewed.body["refresh_token"] ?? ""), keys);
    expect(ended.body["error"]).toBe("invalid_grant");
  });

  it("proofs go by the machine's clock, tokens by the sandbox's", async ({ start }) => {
    const sandbox = await start({ dpop: "supported" });
    const session = await logIn(sandbox);
    sandbox.clock.advance(1_800_000);
    expect((await whoAmI(sandbox.mcpUrl, session.token, session.keys)).status).toBe(200);
    sandbox.clock.advance(1_800_000);
    expect((await whoAmI(sandbox.mcpUrl, session.token, session.keys)).status).toBe(401);
    const { body } = await ask(session.as, refreshForm(session, session.refresh), session.keys);
    expect((await whoAmI(sandbox.mcpUrl, body["access_token"], session.keys)).status).toBe(200);
  });

  it.for([false, true])(
    "tokens that need no user are bound too, and exchanged ones, opaque: %s",
    async (opaque, { start }) => {
      const sandbox = await start({ dpop: "supported", machineGrants: true, opaque });
      const { machine } = sandbox;
      if (!machine) throw new Error("there should be machines");
      const { clientId, clientSecret } = machine.secretClient;
      const headers = { authorization: `Basic ${btoa(`${clientId}:${clientSecret}`)}` };
      const [as, keys, session] = [await discover(sandbox), await generateKeyPair("ES256"), await logIn(sandbox)];
      const workload = { client_id: machine.workloadClient.clientId, assertion: machine.assertion() };
      const subject = {
        subject_token: session.token,
        subject_token_type: "urn:ietf:params:oauth:token-type:access_token",
      };
      const answers = [
        await ask(as, { grant_type: "client_credentials" }, keys, { headers }),
        await ask(as, { grant_type: "urn:ietf:params:oauth:grant-type:jwt-bearer", ...workload }, keys),
        await ask(as, { grant_type: TOKEN_EXCHANGE, ...subject, resource: sandbox.mcpUrl }, keys, { headers }),
      ];
      for (const { body } of answers) {
        expect(body["token_type"]).toBe("DPoP");
        expect((await whoAmI(sandbox.mcpUrl, body["access_token"], keys)).status).toBe(200);
        expect((await whoAmI(sandbox.mcpUrl, body["access_token"])).status).toBe(401);
      }
    },
  );
});

it("where bound tokens are required a token request without a proof is refused, and uses nothing up", async ({
  start,
}) => {
  const sandbox = await start({ dpop: "required" });
  const { as, form, keys } = await getReady(sandbox);
  const refused = await ask(as, form);
  expect([refused.status, refused.body["error"]]).toEqual([400, "invalid_dpop_proof"]);
  const { body } = await ask(as, form, keys);
  expect(body["token_type"]).toBe("DPoP");
  expect((await whoAmI(sandbox.mcpUrl, body["access_token"], keys)).status).toBe(200);
  expect((await prm(sandbox))["dpop_bound_access_tokens_required"]).toBe(true);
  expect(await challenge(sandbox)).toMatch(/^DPoP algs="/);
});

describe("where nonces are wanted", () => {
  it("a certified client logs in, sent back once by each server", async ({ start }) => {
    const sandbox = await start({ dpop: "required", dpopNonces: true });
    const as = await discover(sandbox);
    const client = await register(as, { token_endpoint_auth_method: "none" });
    const DPoP = oauth.DPoP(client, await oauth.generateKeyPair("ES256"));
    const begun = await begin(as, client, { dpop_jkt: await DPoP.calculateThumbprint() });
    const params = oauth.validateAuthResponse(as, client, await landing(begun.url), begun.state);
    const options = { DPoP, [oauth.allowInsecureRequests]: true };
    const redeem = async () => {
      const { verifier } = begun;
      const sent = oauth.authorizationCodeGrantRequest(
        as,
        client,
        oauth.None(),
        params,
        REDIRECT_URI,
        verifier,
        options,
      );
      return oauth.processAuthorizationCodeResponse(as, client, await sent);
    };
    expect(await redeem().catch(oauth.isDPoPNonceError)).toBe(true);
    const tokens = await redeem();
    expect(tokens.token_type).toBe("dpop");
    const list = () => {
      const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list", params: {} });
      const headers = new Headers({
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
      });
      const url = new URL(sandbox.mcpUrl);
      return oauth.protectedResourceRequest(tokens.access_token, "POST", url, headers, body, options);
    };
    expect(await list().catch(oauth.isDPoPNonceError)).toBe(true);
    expect((await list()).status).toBe(200);
    expect(sandbox.requests.filter(({ path }) => /token$|^\/mcp$/.test(path)).map(({ status }) => status)).toEqual([
      400, 200, 401, 200,
    ]);
  });

  it("the official MCP client calls tools, also when its nonce has grown old", async ({ start }) => {
    const sandbox = await start({ dpop: "supported", dpopNonces: true });
    const { as, form, keys } = await getReady(sandbox);
    const first = await ask(as, form, keys);
    expect([first.status, first.body["error"]]).toEqual([400, "use_dpop_nonce"]);
    const { body } = await ask(as, form, keys, { nonce: first.nonce ?? "" });
    const publicJwk = await exportJWK(keys.publicKey);
    const session = await DpopSession.create({ keyPair: { ...keys, publicJwk, thumbprint: "", alg: "ES256" } });
    const send = withDpop(session, () => body["access_token"])(fetch);
    const client = new Client({ name: "test", version: "1" });
    await client.connect(new StreamableHTTPClientTransport(new URL(sandbox.mcpUrl), { fetch: send }));
    for (const minutes of [0, 5, 10]) {
      sandbox.clock.advance(minutes * 60_000);
      const who = await client.callTool({ name: "whoami", arguments: {} });
      expect(who.structuredContent).toMatchObject({ subject: "alice" });
    }
    await client.close();
  });
});

it("options that contradict each other are refused", async () => {
  for (const options of [{ dpop: "yes" }, { dpopNonces: true }] as object[]) {
    await expect(startSandbox(options)).rejects.toMatchObject({
      class: "usage",
      message: expect.stringContaining("sandbox: dpop must be "),
    });
  }
});
