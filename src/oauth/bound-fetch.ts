import { redirectTarget } from "../http/redirect.js";
import { bearerChallenge } from "./challenge.js";
import { type Prover, proverFor } from "./dpop.js";
import type { Grant } from "./grant.js";
import type { Nonces } from "./nonces.js";
import type { Replay } from "./replay.js";

/** Sends a request with a grant's token: as a bearer token, or with the proof that one which is bound to a key needs. */
export async function sendWithToken(
  send: typeof globalThis.fetch,
  replay: Replay,
  grant: Grant,
  nonces: Nonces,
): Promise<Response> {
  const token = grant.tokens.accessToken.reveal();
  const prover = proverFor(grant, nonces);
  if (prover) return sendBound(send, replay, { token, prover });
  // fetch takes the token along inside the origin only.
  return send(...replay.next({ authorization: `Bearer ${token}` }));
}

/**
 * A proof is for one address, so that every hop of a redirect needs its own. A server that wants a nonce of its own in
 * it (RFC 9449 section 9) is given that once.
 */
async function sendBound(
  send: typeof globalThis.fetch,
  replay: Replay,
  { token, prover }: { token: string; prover: Prover },
): Promise<Response> {
  const { method } = replay;
  // A browser does not tell where a redirect leads.
  const redirect = replay.redirect === "follow" ? "manual" : replay.redirect;
  let url = replay.url;
  let hop = 0;
  let hasNonce = false;
  for (;;) {
    const before = prover.nonces.get(url);
    const headers = { authorization: `DPoP ${token}`, dpop: await prover.proof({ method, url }, token) };
    const response = await send(...replay.next(headers, { redirect }, hop === 0 ? undefined : url));
    prover.nonces.learn(url, response.headers);
    const asked = { method, url, hop, mayRepeat: true };
    const target = replay.redirect === "follow" ? redirectTarget(response, asked) : undefined;
    if (target !== undefined) {
      url = target;
      hop++;
      // Another request may have been told the nonce meanwhile.
    } else if (!hasNonce && wantsNonce(response) && prover.nonces.get(url) !== before) hasNonce = true;
    else return response;
    await response.body?.cancel().catch(() => undefined);
    replay.require();
  }
}

function wantsNonce(response: Response): boolean {
  return response.status === 401 && bearerChallenge(response.headers)?.error === "use_dpop_nonce";
}
