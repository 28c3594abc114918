import { describe, expect, it } from "vitest";
import { pendingError } from "../../helpers/captured.js";
import { startScene } from "../../helpers/issuer.js";

const ENDPOINTS = [
  "authorization_endpoint",
  "token_endpoint",
  "registration_endpoint",
  "device_authorization_endpoint",
  "introspection_endpoint",
  "revocation_endpoint",
  "end_session_endpoint",
] as const;
const REDIRECT = "http://127.0.0.1:49152/callback";

describe("an issuer that must have its endpoints at its own origin", () => {
  it.each(ENDPOINTS)("is refused for its %s, which is named with its value and the rule", async (field) => {
    const { issuer, mcp, login, agent, another } = await startScene();
    const other = await another("other");
    const address = `${other.issuer}/elsewhere`;
    issuer.metadata[field] = address;
    const refusal = {
      code: "bad_server_metadata",
      class: "refused",
      message: expect.stringMatching(
        new RegExp(`^${field} "${address}" .* must be at ${issuer.origin}, .* sameOriginEndpoints is set$`),
      ),
    };
    const client = agent({ policy: { sameOriginEndpoints: true } });
    expect(await pendingError(client.login(mcp.url))).toMatchObject(refusal);
    expect(await pendingError(client.beginLogin(mcp.url, REDIRECT))).toMatchObject(refusal);
    const device = agent({ policy: { sameOriginEndpoints: true }, flow: "device" });
    expect(await pendingError(device.login(mcp.url))).toMatchObject(refusal);
    expect([login.urls, login.prompts, other.requests, issuer.to("/pool/register")]).toEqual([[], [], [], []]);
  });

  it("is accepted with its endpoints there, and without the option with endpoints elsewhere", async () => {
    const { issuer, mcp, agent, another } = await startScene();
    const other = await another("other");
    expect((await agent({ policy: { sameOriginEndpoints: true } }).login(mcp.url)).value).toBe("access-as-1");
    issuer.metadata["token_endpoint"] = `${other.issuer}/token`;
    issuer.metadata["authorization_response_iss_parameter_supported"] = true;
    expect((await agent().login(mcp.url)).value).toBe("access-other-1");
  });

  it("passes to the login method where the code goes, and whether the callback names its issuer", async () => {
    for (const promised of [true, undefined]) {
      const { issuer, mcp, login, agent } = await startScene();
      issuer.metadata["authorization_response_iss_parameter_supported"] = promised;
      await agent().login(mcp.url);
      expect(login.takers).toEqual([{ tokenEndpoint: `${issuer.issuer}/token`, promisesIss: promised === true }]);
    }
  });
});
