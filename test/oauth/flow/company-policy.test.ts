import { describe, expect } from "vitest";
import { pendingError } from "../../helpers/captured.js";
import { altering, EXCHANGE, forged, companyTest as it } from "./company-support.js";

describe("the policy of the company", () => {
  it("can deny a server, with an error that says what to ask whom", async ({
    agent,
    machine,
    servers: [server],
    tokenRequests,
  }) => {
    await agent.loginIdp();
    machine.idp.deny(machine.issuer);
    expect(await pendingError(agent.token(server))).toMatchObject({
      code: "assertion_denied",
      class: "auth",
      message: expect.stringContaining("access_denied"),
      hint: `ask the administrators of "${machine.idp.issuer}" to allow its client "sandbox-desktop" assertions for "${machine.issuer}" (resource "${server}")`,
    });
    expect(tokenRequests().at(-1)).toBe(`idp ${EXCHANGE} 400`);
    machine.idp.deny(machine.issuer, false);
    expect((await agent.token(server)).value).toMatch(/./);
  });

  it("can allow fewer scopes, and the client then asks the issuer for those alone", async ({
    agent,
    machine,
    servers: [server],
    tokenRequests,
  }) => {
    await agent.loginIdp();
    machine.idp.limitScopes(machine.issuer, ["read"]);
    const { scope, value } = await agent.token(server, { scope: "read write" });
    expect(scope).toBe("read");
    // What the policy left out is not requested again.
    const before = tokenRequests().length;
    expect((await agent.token(server, { scope: "write" })).value).toBe(value);
    expect(tokenRequests()).toHaveLength(before);
  });

  it("says which issuer gets an assertion of a client with a metadata document", async ({
    agent,
    agentWith,
    machine,
    servers: [server],
    tokenRequests,
  }) => {
    await agent.loginIdp();
    const clientMetadataUrl = "https://agent.example/client.json";
    const fetch = async (input: string | URL | Request, init?: RequestInit) => {
      const response = await globalThis.fetch(input, init);
      if (!String(response.url).includes("oauth-authorization-server")) return response;
      return Response.json({ ...((await response.json()) as object), client_id_metadata_document_supported: true });
    };
    const published = agentWith({ client: undefined, clientMetadataUrl, fetch });
    machine.idp.deny(machine.issuer);
    expect(await pendingError(published.token(server))).toMatchObject({ code: "assertion_denied" });
    expect(tokenRequests().filter((line) => line.startsWith("server"))).toEqual([]);
    machine.idp.deny(machine.issuer, false);
    // The sandbox does not know the document: its provider asserts the user for another client.
    expect(await pendingError(published.token(server))).toMatchObject({ code: "bad_token_answer" });
    expect(tokenRequests().filter((line) => line.startsWith("server"))).toEqual([]);
  });
});

describe("an assertion", () => {
  it("is not sent if the provider issued it for another audience as well", async ({
    agent,
    agentWith,
    machine,
    servers: [server],
    tokenRequests,
  }) => {
    await agent.loginIdp();
    const aud = [machine.issuer, "https://other.example"];
    const fetch = altering((body, form) =>
      form.get("grant_type") === EXCHANGE ? { ...body, access_token: forged(body["access_token"], { aud }) } : body,
    );
    expect(await pendingError(agentWith({ fetch }).token(server))).toMatchObject({
      code: "bad_token_answer",
      message: expect.stringMatching(/^aud of the .*other\.example/),
    });
    expect(tokenRequests().filter((line) => line.startsWith("server"))).toEqual([]);
  });
});
