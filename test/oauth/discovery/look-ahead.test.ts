import { describe, expect, it } from "vitest";
import { AgentAuthError } from "../../../src/errors.js";
import { explainOverride } from "../../../src/http/refuse.js";
import type { AgentClientOptions } from "../../../src/oauth/agent.js";
import { withEveryOption } from "../../../src/oauth/discovery/overrides.js";
import type { PolicyOption } from "../../../src/remedy.js";
import { captureTrace } from "../../helpers/captured.js";
import { type Scene, startScene } from "../../helpers/issuer.js";
import { remedy } from "../../helpers/remedy.js";

async function outcome({ agent, mcp }: Scene, options: Partial<AgentClientOptions> = {}) {
  const { found, trace, error } = await agent(options).discover(mcp.url);
  captureTrace(trace, error);
  return { found, trace, error };
}

const AS = "/.well-known/oauth-authorization-server";

/** A server whose own origin is its issuer, which nothing says but `--legacy-discovery`. */
async function startOwnIssuer(over: Record<string, unknown> = {}, isNamed = false) {
  const scene = await startScene();
  const { mcp, issuer } = scene;
  if (isNamed) delete mcp.metadata["authorization_servers"];
  else {
    mcp.challenge = undefined;
    delete mcp.routes[mcp.wellKnown];
  }
  mcp.routes[AS] = () => ({ json: { ...issuer.metadata, issuer: mcp.origin, ...over } });
  return scene;
}

describe("a server that several checks refuse", () => {
  it.each([false, true])("is refused with every option at once (with resource metadata: %s)", async (isNamed) => {
    const scene = await startOwnIssuer({ code_challenge_methods_supported: undefined }, isNamed);
    const { error, trace } = await outcome(scene);
    expect(error).toMatchObject({
      code: isNamed ? "bad_resource_metadata" : "no_resource_metadata",
      remedy: remedy({ action: "allow", option: "legacyDiscovery", also: ["allowMissingPkceMetadata"] }),
      hint: "if you trust this server, policy.legacyDiscovery and policy.allowMissingPkceMetadata disable these checks for it",
    });
    expect(scene.mcp.to(AS)).toHaveLength(1);
    expect(trace.filter(({ url, used }) => url.endsWith(AS) && used)).toEqual([]);
    const options = { policy: { legacyDiscovery: true, allowMissingPkceMetadata: true } };
    expect((await outcome(scene, options)).found?.issuer.issuer).toBe(scene.mcp.origin);
    await scene.agent(options).login(scene.mcp.url);
  });

  it.each([false, true])(
    "is refused with one option where that is enough (with resource metadata: %s)",
    async (isNamed) => {
      const scene = await startOwnIssuer({}, isNamed);
      expect((await outcome(scene)).error?.remedy).toEqual({ action: "allow", option: "legacyDiscovery" });
      const { found } = await outcome(scene, { policy: { legacyDiscovery: true } });
      expect([found?.issuer.issuer, found?.resource?.resource]).toEqual([
        scene.mcp.origin,
        isNamed ? scene.mcp.url : undefined,
      ]);
    },
  );

  it("is refused with the option that is not tried, and no request is sent on its behalf", async () => {
    const scene = await startOwnIssuer();
    const { mcp, issuer } = scene;
    mcp.metadata = { resource: mcp.url, authorization_servers: [issuer.issuer] };
    issuer.metadata["code_challenge_methods_supported"] = undefined;
    mcp.routes[mcp.wellKnown] = () => ({ json: mcp.metadata });
    mcp.challenge = `Bearer resource_metadata="${issuer.origin}/prm"`;
    expect((await outcome(scene)).error?.remedy).toEqual({ action: "allow", option: "allowCrossOriginMetadata" });
    expect(issuer.requests).toEqual([]);
  });

  it("has the options for its issuer, where its metadata name one", async () => {
    const scene = await startScene();
    scene.issuer.metadata["code_challenge_methods_supported"] = undefined;
    const { error } = await outcome(scene);
    expect(error?.remedy).toEqual({ action: "allow", option: "allowMissingPkceMetadata" });
    expect(scene.issuer.to(`/pool${AS}`)).toHaveLength(1);
  });

  it.each(["legacyDiscovery", "allowMissingPkceMetadata"] as const)(
    "is refused with the option for endpoints of two origins as well as with %s",
    async (option) => {
      const scene = option === "legacyDiscovery" ? await startOwnIssuer() : await startScene();
      const { mcp, issuer } = scene;
      const authorization = `${option === "legacyDiscovery" ? issuer.origin : mcp.origin}/authorize`;
      const over = { authorization_endpoint: authorization };
      if (option === "legacyDiscovery") {
        mcp.routes[AS] = () => ({
          json: { ...issuer.metadata, issuer: mcp.origin, token_endpoint: `${mcp.origin}/t`, ...over },
        });
      } else Object.assign(issuer.metadata, over, { code_challenge_methods_supported: undefined });
      const both = { action: "allow", option, also: ["allowCrossOriginEndpoints"] };
      expect((await outcome(scene)).error?.remedy).toEqual(both);
      const alone = { action: "allow", option };
      expect((await outcome(scene, { policy: { allowCrossOriginEndpoints: true } })).error?.remedy).toEqual(alone);
      const confirmEndpoints = async () => true;
      const asking = { login: { start: async () => ({}) as never, confirmEndpoints } };
      expect((await outcome(scene, asking as never)).error?.remedy).toEqual(alone);
      issuer.metadata["device_authorization_endpoint"] = undefined;
      expect((await outcome(scene, { flow: "device" })).error?.remedy).toEqual(alone);
      issuer.metadata["authorization_response_iss_parameter_supported"] = true;
      expect((await outcome(scene)).error?.remedy).toEqual(alone);
    },
  );

  it("is refused with the client that its issuer wants registered by hand, unless there is one", async () => {
    const scene = await startScene();
    const { mcp, issuer } = scene;
    Object.assign(issuer.metadata, { code_challenge_methods_supported: undefined, registration_endpoint: undefined });
    const alone = { action: "allow", option: "allowMissingPkceMetadata" };
    const { error } = await outcome(scene);
    expect(error).toMatchObject({
      code: "pkce_unsupported",
      remedy: remedy({ ...alone, clientIssuer: issuer.issuer } as never),
      hint: "if you trust this server, policy.allowMissingPkceMetadata disables this check for it; and give the client that its issuer knows as client",
    });
    const client = { clientId: "known", issuer: issuer.issuer };
    expect((await outcome(scene, { client })).error?.remedy).toEqual(alone);
    issuer.metadata["client_id_metadata_document_supported"] = true;
    const clientMetadataUrl = "https://client.example/agentauth.json";
    expect((await outcome(scene, { clientMetadataUrl })).error?.remedy).toEqual(alone);
    await scene.agent({ client, policy: { allowMissingPkceMetadata: true } }).login(mcp.url);
  });

  it("keeps the first refusal where the second has no option", async () => {
    const scene = await startOwnIssuer({ token_endpoint: undefined });
    const { error } = await outcome(scene);
    expect([error?.code, error?.remedy]).toEqual([
      "no_resource_metadata",
      { action: "allow", option: "legacyDiscovery" },
    ]);
  });

  it("is not found to need less where its origin does not answer", async () => {
    const scene = await startOwnIssuer();
    scene.mcp.routes[AS] = { status: 503, text: "" };
    expect((await outcome(scene)).error?.code).toBe("no_resource_metadata");
  });
});

it.each(["allowPrivateNetwork", "allowCrossOriginMetadata"] as const)("%s is named and never tried", async (option) => {
  const refusal = (name: PolicyOption) => new AgentAuthError("x", "m", { class: "refused", ...explainOverride(name) });
  const tried: object[] = [];
  const error = await withEveryOption(refusal("legacyDiscovery"), async (more) => {
    tried.push(more);
    throw refusal(option);
  });
  expect(tried).toEqual([{ legacyDiscovery: true }]);
  expect(error).toMatchObject({ remedy: { action: "allow", option: "legacyDiscovery", also: [option] } });
});
