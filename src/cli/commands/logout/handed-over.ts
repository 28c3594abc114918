import { AgentAuthError, messageOf, usageError } from "../../../errors.js";
import { isJsonObject, parseStrictJson } from "../../../http/strict-json.js";
import type { AgentClient } from "../../../oauth/agent.js";
import { transientStore } from "../../../oauth/hand-over.js";
import { CodecError, decodeGrant, encode, type Members, readObject, readString } from "../../../oauth/model/codec.js";
import { readSecretFile } from "../../../profile/secrets.js";
import { quote } from "../../../redact.js";
import { parseMcpUrlArgument } from "../../clients/mcp-url.js";
import type { CommandContext } from "../../runtime/context.js";

const MAX_BYTES = 64 * 1024;

/**
 * A login that `login --hand-over` printed, in any of its formats, in a client that has it alone.
 *
 * @param source its file; `-` is stdin
 * @throws `AgentAuthError` `usage` for another text, `issuer_mismatch` if its issuer is not the one that its server names:
 * that issuer gets none of the secrets
 */
export async function openHandedOver(
  source: string,
  profile: string,
  context: CommandContext,
): Promise<{ agent: AgentClient; server: string }> {
  const { io, signal } = context;
  const isInput = source === "-";
  const text = isInput ? await io.stdin.text({ maxBytes: MAX_BYTES, signal }) : readSecretFile(source);
  const read = <T>(work: () => T): T => {
    try {
      return work();
    } catch (cause) {
      const what = `${isInput ? "standard input" : `the file ${source}`} is not a login that was handed over`;
      throw usageError(`${what}: ${messageOf(cause)}`, "pass what agentauth login --hand-over printed", cause);
    }
  };
  const auth = read(() => readCredential(parseStrictJson(text)));
  const server = parseMcpUrlArgument(String(auth["mcp_server_url"]));
  // With what is stored for the server, such as an address that the user allowed.
  const { found, error } = await (await context.agent()).discover(server, { signal });
  if (found === undefined) throw error;
  const { issuer, tokenEndpoint: token, revocationEndpoint: revocation } = found.issuer;
  const { refresh, access_token: accessToken, expires_at: expiresAt } = auth;
  const {
    token_endpoint,
    client_id: clientId = "",
    token_endpoint_auth,
    refresh_token: refreshToken,
  } = members(refresh);
  const { type: authMethod = "none", client_secret: clientSecret } = members(token_endpoint_auth);
  if (refresh !== undefined && token_endpoint !== token) {
    const message = `${quote(server)} names an issuer with the token endpoint ${quote(token)}, but the login is of ${quote(token_endpoint)}: nothing was sent`;
    throw new AgentAuthError("issuer_mismatch", message, { class: "refused", hint: "revoke it at its issuer" });
  }
  const client = { issuer, clientId, clientSecret, authMethod, source: "dynamic" };
  const tokens = { accessToken, refreshToken, expiresAt: Date.parse(String(expiresAt)) || undefined };
  const endpoints = { token, revocation };
  const grant = read(() =>
    decodeGrant(encode({ kind: "grant", profile, server, resource: "none", issuer, endpoints, client, tokens })),
  );
  const agent = await context.agent({ adapt: (options) => ({ ...options, store: transientStore(options, grant) }) });
  return { agent, server };
}

function readCredential(value: unknown): Members {
  const { auth = value } = members(value);
  const credential = members(auth);
  if (credential["type"] !== "mcp_oauth") throw new CodecError('type is not "mcp_oauth"');
  for (const name of ["mcp_server_url", "access_token"]) readString(credential, name);
  if (credential["refresh"] !== undefined) readString(readObject(credential, "refresh"), "refresh_token");
  return credential;
}

const members = (value: unknown): Members => (isJsonObject(value) ? value : {});
