import { AgentAuthError, isAgentAuthError } from "../errors.js";
import { type AddressPolicy, classifyHost, policyFor } from "../http/address-class.js";
import { saysJson } from "../http/body.js";
import { type BufferedResponse, shownUrl } from "../http/buffered-response.js";
import { systemClock } from "../http/deadline.js";
import { networkError } from "../http/network-error.js";
import { checkAddress } from "../http/peer-address.js";
import { refused } from "../http/refuse.js";
import { strictObject, uncompressed } from "../http/strict-object.js";
import { createTransport, type Transport } from "../http/transport.js";
import { userAgent } from "../http/user-agent.js";
import { serverMetadataAddresses } from "../http/well-known.js";
import { quote, Secret } from "../redact.js";
import type { IntrospectionOptions, ResourceServerOptions } from "./options.js";
import { RefreshingCache } from "./refreshing-cache.js";

/** What a resource server needs of an issuer. Whatever it throws says that a token cannot be judged, not that it is bad. */
export interface Issuer {
  /** Its identifier, as in `iss`. */
  readonly issuer: string;
  /** Reads its key set (RFC 7517 section 5). */
  keys(signal: AbortSignal): Promise<Record<string, unknown>>;
  /** Asks it about a token (RFC 7662 section 2.2). */
  introspect(token: string, signal: AbortSignal): Promise<Record<string, unknown>>;
}

/** How requests to an issuer leave. */
interface Outlet {
  send: Transport;
  bounds: () => Promise<AddressPolicy>;
}

const MAX_BYTES = 256 * 1024;
const ATTEMPTS = 2;

/** An issuer that is reached over HTTP: every address from its own metadata, checked before anything is sent there. */
export function httpIssuer(issuer: string, options: ResourceServerOptions, keyTtl: number): Issuer {
  const outlet = openOutlet(issuer, options);
  const headers = { "user-agent": userAgent(options.userAgent), "accept-encoding": "identity", accept: JSON_TYPE };
  const read = async (url: string, signal: AbortSignal) =>
    uncompressed(await outlet.send(new Request(url, { headers }), signal));
  const metadata = new RefreshingCache({
    read: (signal) => findMetadata(issuer, (url) => read(url, signal)),
    ttl: keyTtl * 1000,
    clock: options.clock ?? systemClock,
  });
  const endpoint = async (field: string, signal: AbortSignal): Promise<string> => {
    const { document, url } = await metadata.get(signal);
    return checkAddress(document[field], field, url, { bounds: await outlet.bounds() });
  };
  return {
    issuer,
    keys: async (signal) => strictObject(found(await read(await endpoint("jwks_uri", signal), signal))),
    async introspect(token, signal) {
      const form = new URLSearchParams({ token, token_type_hint: "access_token" });
      const sent = new Headers(headers);
      await authenticate(options.introspection, { headers: sent, form });
      sent.set("content-type", "application/x-www-form-urlencoded");
      const url = await endpoint("introspection_endpoint", signal);
      const request = new Request(url, { method: "POST", headers: sent, body: form.toString() });
      return strictObject(found(uncompressed(await outlet.send(request, signal))));
    },
  };
}

const JSON_TYPE = "application/json";

function openOutlet(issuer: string, options: ResourceServerOptions): Outlet {
  const { network, fetch, timeoutMs: timeout = 5000, clock, random, allowPrivateNetwork } = options;
  const url = new URL(issuer);
  const lifted = allowPrivateNetwork ? "all" : new Set<string>();
  const literal = classifyHost(url.hostname);
  const way = network?.connectTo(url, lifted);
  const deadline = ATTEMPTS * timeout;
  const base = { fetch: way?.fetch ?? fetch, timeoutMs: timeout, deadline, clock, random };
  return {
    send: createTransport({ ...base, maxAttempts: ATTEMPTS, maxBodyBytes: MAX_BYTES }),
    async bounds() {
      const reach = literal ?? (await way?.addressClass().catch((error: unknown) => lost(error, issuer)));
      return policyFor(reach, lifted);
    },
  };
}

function lost(error: unknown, url: string): never {
  throw networkError(error, url);
}

interface Metadata {
  document: Record<string, unknown>;
  url: string;
}

/** The first document that is of this very issuer. One that is not, or is none, leads to the next address. */
async function findMetadata(issuer: string, read: (url: string) => Promise<BufferedResponse>): Promise<Metadata> {
  let first: AgentAuthError | undefined;
  for (const url of serverMetadataAddresses(issuer).flat()) {
    try {
      const reply = await read(url);
      // Where there is nothing, or a page for people, the document is at another address.
      if (!reply.response.ok && reply.status < 500 && reply.status !== 429) continue;
      if (reply.response.ok && !saysJson(reply.response.headers)) continue;
      const document = strictObject(found(reply));
      if (document["issuer"] === issuer) return { document, url };
      const rule = `must be exactly ${quote(issuer)} (RFC 8414 section 3.3)`;
      throw refused("issuer_mismatch", { field: "issuer", value: document["issuer"], from: url, rule });
    } catch (error) {
      if (!isAgentAuthError(error) || error.class === "aborted") throw error;
      // All of them are on one host: what does not answer at all is not asked four times.
      if (error.class === "unavailable" && error.status === undefined) throw error;
      first ??= error;
    }
  }
  const nothing = `the authorization server ${quote(issuer)} publishes no metadata (RFC 8414)`;
  throw first ?? new AgentAuthError("no_server_metadata", nothing, { class: "refused" });
}

function found(reply: BufferedResponse): BufferedResponse {
  if (reply.response.ok) return reply;
  const url = shownUrl(reply.url);
  const code = reply.status >= 500 ? "server_error" : reply.status === 429 ? "rate_limited" : "http_error";
  throw new AgentAuthError(code, `${url}: HTTP ${reply.status}`, { class: "unavailable", status: reply.status, url });
}

async function authenticate(
  options: IntrospectionOptions | undefined,
  request: { headers: Headers; form: URLSearchParams },
): Promise<void> {
  const { clientId = "", clientSecret = "", authenticate: other } = options ?? {};
  if (other) {
    try {
      return await other(request);
    } catch (cause) {
      const message = "introspection.authenticate failed, so that the issuer could not be asked";
      throw new AgentAuthError("network_failed", message, { class: "unavailable", cause });
    }
  }
  const secret = clientSecret instanceof Secret ? clientSecret.reveal() : clientSecret;
  // Both parts form-encoded before they are joined (RFC 6749 section 2.3.1).
  const pair = `${formEncoded(clientId)}:${formEncoded(secret)}`;
  request.headers.set("authorization", `Basic ${btoa(pair)}`);
}

function formEncoded(text: string): string {
  return new URLSearchParams({ "": text }).toString().slice(1);
}
