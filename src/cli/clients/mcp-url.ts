import { usageError } from "../../errors.js";
import { parseMcpUrl } from "../../oauth/model/resource.js";

/**
 * The address of an MCP server as it was typed.
 *
 * @throws `AgentAuthError` `usage`
 */
export function parseMcpUrlArgument(value: string): string {
  try {
    return parseMcpUrl(value).url;
  } catch (cause) {
    if (!(cause instanceof TypeError)) throw cause;
    throw usageError(cause.message, undefined, cause);
  }
}
