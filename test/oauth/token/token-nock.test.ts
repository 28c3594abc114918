import nock from "nock";
import { validateAuthResponse } from "oauth4webapi";
import { describe, expect, it } from "vitest";
import { NO_RESOURCE } from "../../../src/oauth/model/resource.js";
import { exchangeCode, refreshTokens } from "../../../src/oauth/token/token.js";
import { Secret } from "../../../src/redact.js";
import { pendingError } from "../../helpers/captured.js";
import { madeGrant } from "../../helpers/grant.js";
import { useNock } from "../../helpers/nock.js";
import { tokenCall } from "./token-call.js";

const ISSUER = "https://as.example/pool";
const REDIRECT = "http://127.0.0.1:49152/callback";
const RESOURCE = "https://mcp.example/mcp";
const VERIFIER = "v".repeat(43);

const call = (issuer = ISSUER) => tokenCall(issuer, { client: { clientId: "client-1" } });
const token = (form?: nock.DataMatcherMap) => nock("https://as.example").post("/pool/token", form);
const refresh = () =>
  token({ grant_type: "refresh_token", refresh_token: "refresh-token-1", resource: RESOURCE, client_id: "client-1" });

async function exchange() {
  const parameters = validateAuthResponse(
    { issuer: ISSUER },
    { client_id: "client-1" },
    new URLSearchParams({ code: "code-1", state: "state-1" }),
    "state-1",
  );
  return exchangeCode(call(), {
    parameters,
    redirectUri: REDIRECT,
    verifier: new Secret(VERIFIER),
    resource: RESOURCE,
  });
}

useNock();

describe("requests to the token endpoint, on the global fetch", () => {
  it("trades a code for tokens", async () => {
    token({
      grant_type: "authorization_code",
      code: "code-1",
      code_verifier: VERIFIER,
      redirect_uri: REDIRECT,
      resource: RESOURCE,
      client_id: "client-1",
    }).reply(200, { access_token: "access-1", token_type: "Bearer", expires_in: 3600, refresh_token: "refresh-1" });
    expect(await exchange()).toMatchObject({ accessToken: "access-1", refreshToken: "refresh-1", expiresIn: 3600 });
  });

  it("reports the error that the issuer returns, without the code", async () => {
    token().reply(400, { error: "invalid_grant", error_description: "code-1 was used before" });
    const error = await pendingError(exchange());
    expect(error).toMatchObject({ code: "invalid_grant", class: "auth" });
    expect(String(error)).not.toContain("code-1");
  });

  it.each([
    ["at first", {}, "a/read", {}, undefined],
    ["where it has to", { refreshesWithScope: true }, "a/read", { scope: "a/read offline_access" }, true],
    ["after a token for others", {}, "other/read", {}, true],
  ])("names the scopes in a refresh %s", async (_when, known, granted, named, next) => {
    const form = { grant_type: "refresh_token", refresh_token: "refresh-token-1", client_id: "client-1", ...named };
    const answer = { access_token: "access-2", token_type: "Bearer", scope: granted };
    nock("https://as.example").post("/token", form).reply(200, answer);
    const grant = madeGrant({ requestedScope: "a/read offline_access", resource: NO_RESOURCE, ...known });
    expect((await refreshTokens(call("https://as.example"), grant)).form.refreshesWithScope).toBe(next);
  });

  it("never repeats a refresh by itself; a second call may succeed", async () => {
    refresh().reply(503);
    expect(await pendingError(refreshTokens(call(), madeGrant()))).toMatchObject({ class: "unavailable", status: 503 });
    refresh().reply(200, { access_token: "access-2", token_type: "Bearer" });
    expect(await refreshTokens(call(), madeGrant())).toMatchObject({ response: { accessToken: "access-2" } });
  });
});
