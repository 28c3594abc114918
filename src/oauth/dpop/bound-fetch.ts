import { redirectTarget } from "../../http/redirect.js";
import { bearerChallenge } from "../discovery/challenge.js";
import type { Grant } from "../grant/grant.js";
import type { Replay } from "../http/replay.js";
import { type Prover, proverFor } from "./dpop.js";
import type { Nonces } from "./nonces.js";

/** Sends a request with a grant's token: as a bearer token, or with the proof that one which is bound to a key needs. */
export async function sendWithToken(
  send: typeof globalThis.fetch,
  replay: Replay,
  grant: Grant,
  nonces: Nonces,
): Promise<Response> {
  const token = grant.tokens.accessToken.reveal();
  const prover = proverFor(grant, nonces);
  // fetch takes the token along inside the origin only.
  if (!prover && hasOnlyPublicHeaders(replay)) return send(...replay.next({ authorization: `Bearer ${token}` }));
  return sendWithinOrigin(send, replay, { token, prover });
}

/** Headers in which nothing is told that is not for every server. */
const PUBLIC_HEADERS: ReadonlySet<string> = new Set([
  "accept",
  "accept-encoding",
  "accept-language",
  "cache-control",
  "if-modified-since",
  "if-none-match",
  "pragma",
  "range",
  "user-agent",
]);

/** Whether a request, but for its token, may be seen by any server that this one redirects to. */
function hasOnlyPublicHeaders(replay: Replay): boolean {
  if (replay.method !== "GET" && replay.method !== "HEAD") return false;
  const [, { headers }] = replay.next({});
  return [...new Headers(headers).keys()].every((name) => name === "authorization" || PUBLIC_HEADERS.has(name));
}

/**
 * Follows redirects inside the origin alone: what a request says is for its server. A proof is for one address, so that
 * every hop needs its own. A server that wants a nonce of its own in it (RFC 9449 section 9) is given that once.
 */
async function sendWithinOrigin(
  send: typeof globalThis.fetch,
  replay: Replay,
  { token, prover }: { token: string; prover: Prover | undefined },
): Promise<Response> {
  const { method } = replay;
  // A browser does not tell where a redirect leads.
  const redirect = replay.redirect === "follow" ? "manual" : replay.redirect;
  let url = replay.url;
  let hop = 0;
  let hasNonce = false;
  for (;;) {
    const before = prover?.nonces.get(url);
    const headers = await credentials(token, prover, { method, url });
    const response = await send(...replay.next(headers, { redirect }, hop === 0 ? undefined : url));
    prover?.nonces.learn(url, response.headers);
    const asked = { method, url, hop, mayRepeat: true };
    const target = replay.redirect === "follow" ? redirectTarget(response, asked) : undefined;
    if (target !== undefined) {
      url = target;
      hop++;
      // Another request may have been told the nonce in the meantime.
    } else if (prover && !hasNonce && isNonceChallenge(response) && prover.nonces.get(url) !== before) hasNonce = true;
    else return response;
    await response.body?.cancel().catch(() => undefined);
    replay.require();
  }
}

async function credentials(
  token: string,
  prover: Prover | undefined,
  request: { method: string; url: string },
): Promise<Record<string, string>> {
  if (!prover) return { authorization: `Bearer ${token}` };
  return { authorization: `DPoP ${token}`, dpop: await prover.proof(request, token) };
}

function isNonceChallenge(response: Response): boolean {
  return response.status === 401 && bearerChallenge(response.headers)?.error === "use_dpop_nonce";
}
