import { messageOf, usageError } from "../../../errors.js";
import { isJsonObject, parseStrictJson } from "../../../http/strict-json.js";
import type { AgentClient } from "../../../oauth/agent.js";
import { SUPPORTED_METHODS } from "../../../oauth/client/client-auth.js";
import { grantOfHandOver, type McpOAuthCredential, transientStore } from "../../../oauth/hand-over.js";
import { CodecError, readObject, readOptional, readString } from "../../../oauth/model/codec.js";
import { readSecretFile } from "../../../profile/secrets.js";
import { parseMcpUrlArgument } from "../../clients/mcp-url.js";
import type { CommandContext } from "../../runtime/context.js";

const MAX_BYTES = 64 * 1024;

/**
 * A login that `login --hand-over` printed, in a client that has it alone.
 *
 * @param source its file; `-` is stdin
 * @throws `AgentAuthError` `usage` for another text, `issuer_mismatch` if its issuer is no longer that of its server
 */
export async function openHandedOver(
  source: string,
  profile: string,
  context: CommandContext,
): Promise<{ agent: AgentClient; server: string }> {
  const { io, signal } = context;
  const isInput = source === "-";
  const text = isInput ? await io.stdin.text({ maxBytes: MAX_BYTES, signal }) : readSecretFile(source);
  const credential = parseCredential(text, isInput ? "standard input" : `the file ${source}`);
  const server = parseMcpUrlArgument(credential.mcp_server_url);
  // With what is stored for the server, such as an address that the user allowed.
  const { found, error } = await (await context.agent()).discover(server, { signal });
  if (found === undefined) throw error;
  const grant = grantOfHandOver(credential, found.issuer, profile);
  const agent = await context.agent({ adapt: (options) => ({ ...options, store: transientStore(options, grant) }) });
  return { agent, server };
}

function parseCredential(text: string, from: string): McpOAuthCredential {
  try {
    const value = parseStrictJson(text);
    const holder = isJsonObject(value) ? value : {};
    const auth = isJsonObject(holder["auth"]) ? holder["auth"] : holder;
    if (auth["type"] !== "mcp_oauth") throw new CodecError('type is not "mcp_oauth"');
    for (const name of ["mcp_server_url", "access_token"]) readString(auth, name);
    readOptional(auth, "expires_at");
    if (auth["refresh"] !== undefined) checkRefresh(readObject(auth, "refresh"));
    return auth as unknown as McpOAuthCredential;
  } catch (cause) {
    const message = `${from} is not a login that was handed over: ${messageOf(cause)}`;
    throw usageError(message, "pass what agentauth login --hand-over printed", cause);
  }
}

function checkRefresh(refresh: Record<string, unknown>): void {
  for (const name of ["token_endpoint", "client_id", "refresh_token"]) readString(refresh, name);
  for (const name of ["scope", "resource"]) readOptional(refresh, name);
  const auth = readObject(refresh, "token_endpoint_auth");
  const method = SUPPORTED_METHODS.find((one) => one === auth["type"]);
  if (method === undefined) throw new CodecError("token_endpoint_auth.type is not known");
  if (method !== "none") readString(auth, "client_secret");
}
