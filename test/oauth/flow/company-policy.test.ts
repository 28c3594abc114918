import { describe, expect } from "vitest";
import { pendingError } from "../../helpers/captured.js";
import { altering, EXCHANGE, forged, companyTest as it, JWT_BEARER } from "./company-support.js";

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
    // What the policy left out is not asked for again.
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
  it("that the issuer refuses is sent once, and the error says whom to ask", async ({
    agent,
    agentWith,
    machine,
    servers: [server],
    tokenRequests,
  }) => {
    await agent.loginIdp();
    const sent: string[] = [];
    const fetch = async (input: string | URL | Request, init?: RequestInit) => {
      const request = new Request(input, init);
      const form = new URLSearchParams(await request.clone().text());
      if (form.get("grant_type") !== JWT_BEARER) return globalThis.fetch(request);
      sent.push(form.get("assertion") ?? "");
      return Response.json({ error: "invalid_grant", error_description: "used already" }, { status: 400 });
    };
    const refused = agentWith({ fetch });
    for (let time = 1; time <= 2; time++)
      expect(await pendingError(refused.token(server))).toMatchObject({
        code: "invalid_grant",
        hint: `ask the administrators of the server whether its issuer trusts "${machine.idp.issuer}" and knows the user and the client`,
      });
    expect(new Set(sent).size).toBe(2);
    expect(sent).toHaveLength(2);
    expect(tokenRequests()).toEqual(["idp authorization_code 200", ...sent.map(() => `idp ${EXCHANGE} 200`)]);
  });

  it("is not even requested for an issuer that only the server names", async ({
    agent,
    agentWith,
    machine,
    servers: [server],
    tokenRequests,
  }) => {
    await agent.loginIdp();
    const unbound = agentWith({ client: { clientId: machine.workloadClient.clientId } });
    expect(await pendingError(unbound.token(server))).toMatchObject({ code: "issuer_unbound" });
    expect(tokenRequests()).toEqual(["idp authorization_code 200"]);
  });

  it.for<[string, (issuer: string) => unknown]>([
    ["another audience", () => "https://other.example"],
    ["another audience as well", (issuer) => [issuer, "https://other.example"]],
  ])(
    "is not sent if the provider issued it for %s",
    async ([_what, audience], { agent, agentWith, machine, servers: [server], tokenRequests }) => {
      await agent.loginIdp();
      const aud = audience(machine.issuer);
      const fetch = altering((body, form) =>
        form.get("grant_type") === EXCHANGE ? { ...body, access_token: forged(body["access_token"], { aud }) } : body,
      );
      expect(await pendingError(agentWith({ fetch }).token(server))).toMatchObject({
        code: "bad_token_answer",
        message: expect.stringMatching(/^aud of the .*other\.example/),
      });
      expect(tokenRequests().filter((line) => line.startsWith("server"))).toEqual([]);
    },
  );
});
