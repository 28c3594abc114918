import type { Issuer } from "../../resource-server/issuer.js";
import type { PoolServer } from "./pool-server.js";
import { introspectionOf } from "./verify.js";

/**
 * The authorization server of a pool as its MCP servers see it. They call it inside the process: no fault strikes these
 * calls, and the request log does not contain them.
 */
export function innerIssuer(server: PoolServer): Issuer {
  return {
    issuer: server.issuer,
    async keys() {
      const { answer } = await server.run();
      const { body } = await answer({ method: "GET", url: "/jwks", headers: {}, body: Buffer.alloc(0), due: [] });
      return JSON.parse(body.toString()) as Record<string, unknown>;
    },
    async introspect(token) {
      const facts = await server.inspect(token);
      return facts ? introspectionOf(server.issuer, facts) : { active: false };
    },
  };
}
