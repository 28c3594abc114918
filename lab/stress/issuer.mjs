// Checks that the issuer is strict: otherwise the other scenarios would prove nothing.
import { openLane } from "./files/lane.mjs";
import { must } from "./tools.mjs";

/** A used refresh token must be rejected and end the session with all its tokens, except within the grace period. */
export async function checkIssuer() {
  const [strict, lenient] = await Promise.all([openLane(), openLane({ grace: 5 })]);
  try {
    const grant = await strict.grant();
    const old = grant.tokens.refreshToken.reveal();
    const first = await refresh(grant, old);
    must(first.refresh_token !== undefined, `the issuer does not refresh: ${first.error_description}`);
    must(first.refresh_token !== old, "the issuer does not rotate refresh tokens");
    must((await refresh(grant, old)).error === "invalid_grant", "the issuer accepts a used refresh token");
    must((await refresh(grant, first.refresh_token)).error === "invalid_grant", "reuse does not end the session");
    must(strict.ledger.rotations().length === 1 && strict.ledger.refusals().length === 2, "the log does not add up");
    const other = await lenient.grant();
    for (const time of ["first", "second"]) {
      const again = await refresh(other, other.tokens.refreshToken.reveal());
      must(again.refresh_token !== undefined, `within the grace the ${time} use is refused`);
    }
  } finally {
    await Promise.all([strict.close(), lenient.close()]);
  }
}

/** Sends a refresh token to the token endpoint of a grant. */
export async function refresh({ endpoints, client }, token) {
  const { clientId, clientSecret, authMethod } = client;
  const body = new URLSearchParams({ grant_type: "refresh_token", refresh_token: token });
  const headers = {};
  if (authMethod === "client_secret_basic")
    headers.authorization = `Basic ${btoa(`${clientId}:${clientSecret.reveal()}`)}`;
  else {
    body.set("client_id", clientId);
    if (clientSecret !== undefined) body.set("client_secret", clientSecret.reveal());
  }
  return (await fetch(endpoints.token, { method: "POST", headers, body })).json();
}
