import { AgentAuthError } from "../../errors.js";
import type { AccessToken } from "../../oauth/grant/access-token.js";
import { quote, shellWord } from "../../redact.js";

/**
 * A token that is bound to a key needs a proof of that key with every request: a program that gets the token alone would be
 * rejected everywhere, without knowing why.
 *
 * @throws `AgentAuthError` class `usage` for such a token
 */
export function checkHandOver({ tokenType, server }: Pick<AccessToken, "tokenType" | "server">, how: string): void {
  if (tokenType === "Bearer") return;
  throw new AgentAuthError(
    "usage",
    `the token for ${quote(server)} is bound to a key of this machine (DPoP, RFC 9449), and ${how} hands over the token alone`,
    {
      class: "usage",
      hint: `agentauth request ${shellWord(server)} and agentauth mcp prove the key; token --format json says of what type the token is`,
    },
  );
}
