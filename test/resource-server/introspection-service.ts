import type { Reply } from "../helpers/issuer.js";
import { type Claims, introspecting, type Signer } from "./support.js";

/**
 * Lets the issuer return these claims of these tokens, and report any other as not active.
 *
 * @param reply what it answers instead, whatever the token
 */
export function createService(signer: Signer, tokens: Readonly<Record<string, Claims>>, reply?: Reply): void {
  introspecting(signer, ({ body }) => {
    const claims = tokens[new URLSearchParams(body).get("token") ?? ""];
    return reply ?? { json: claims ? { active: true, ...claims } : { active: false } };
  });
}
