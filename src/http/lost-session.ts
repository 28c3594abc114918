/**
 * What the session checks of the official SDKs, of their examples and of servers that follow those say of a session that
 * they do not know.
 */
const NO_SESSION =
  /^(?:(?:bad request|unauthorized): )?(?:no valid session id(?: provided| or not an initialize request)?|server not initialized|session (?:not found|expired)|(?:invalid(?: or missing)?|unknown|expired) (?:mcp-)?session(?:[ -]id)?(?: header)?)\.?$/i;

/** Longer texts say something else. */
const MAX_LENGTH = 200;

/** Whether an MCP server says with this text, the whole of an answer or of its error, that it does not know a session. */
export function saysSessionLost(text: string): boolean {
  return NO_SESSION.test(text.trim());
}

/**
 * Whether an MCP server answers 401 because it does not know the session of a request, as those made with the official
 * SDK for Rust do after a restart. It has accepted the token, which neither a refresh nor a login need replace.
 *
 * @param headers those of the request
 */
export async function isSessionUnknown(response: Response, headers: Headers): Promise<boolean> {
  const { status, headers: answered } = response;
  if (status !== 401 || !headers.has("mcp-session-id") || answered.has("www-authenticate")) return false;
  if (!(Number(answered.get("content-length") ?? Number.NaN) <= MAX_LENGTH)) return false;
  return saysSessionLost(await response.clone().text());
}
