// Type-checks the resource server in a strict program without Node types.
import { isAgentAuthError } from "agentauth";
import {
  createResourceServer,
  type Presentation,
  type ResourceServer,
  type ResourceServerEvent,
  type VerifiedToken,
} from "agentauth/resource-server";

const events: ResourceServerEvent[] = [];
const server: ResourceServer = createResourceServer({
  resource: "https://mcp.example/mcp",
  authorizationServers: ["https://auth.example/pool_1"],
  requiredScopes: ["mcp"],
  introspection: { clientId: "resource-server", clientSecret: "sample" },
  dpop: "required",
  log: (event) => events.push(event),
});

export default {
  fetch: server.protect(
    async (request, { verified, authInfo }) => {
      const subject: string | undefined = verified.subject;
      return Response.json({ subject, scopes: authInfo.scopes, path: new URL(request.url).pathname });
    },
    { scopes: (request) => (request.method === "POST" ? ["write"] : []) },
  ),
};

export async function subjectOf(token: string, presented: Presentation): Promise<string | undefined> {
  try {
    const verified: VerifiedToken = await server.verify(token, { presented, scopes: ["mcp"] });
    return verified.expiresAt > new Date() ? verified.subject : undefined;
  } catch (error) {
    if (isAgentAuthError(error) && error.code === "invalid_token") return undefined;
    throw error;
  }
}

// @ts-expect-error a resource server needs the issuers whose tokens it accepts
createResourceServer({ resource: "https://mcp.example/mcp" });
// @ts-expect-error a bound token comes with its proof
const incomplete: Presentation = { scheme: "DPoP" };
export const presentations = [incomplete];
