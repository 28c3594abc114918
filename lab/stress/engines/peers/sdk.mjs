// The OAuth client provider of the official MCP SDK, with its records in Redis.
import { auth } from "@modelcontextprotocol/sdk/client/auth.js";

/** One record for each user: the client, the tokens, and when the access token expires. */
const keyOf = (profile) => `sdk:${profile}`;
const read = async (redis, profile) => JSON.parse(await redis.get(keyOf(profile)));
const write = (redis, profile, record) => redis.set(keyOf(profile), JSON.stringify(record));

/**
 * A side of the comparison.
 *
 * @param lockOf one of locks.mjs
 */
export function sdk(lockOf) {
  return { seed, open: (context) => openWith(lockOf(context.redis), context), refreshToken };
}

async function seed(redis, { profile, client, tokens, issuer }) {
  await write(redis, profile, {
    client: {
      client_id: client.clientId,
      client_secret: client.clientSecret.reveal(),
      token_endpoint_auth_method: client.authMethod,
      issuer,
    },
    tokens: {
      access_token: tokens.accessToken.reveal(),
      refresh_token: tokens.refreshToken.reveal(),
      token_type: "Bearer",
      issuer,
    },
    expiresAt: 0,
  });
}

async function refreshToken(redis, { profile }) {
  return (await read(redis, profile)).tokens.refresh_token;
}

function openWith(lock, { redis, server, fetch: fetchFn, now }) {
  const discovery = {};
  const living = async (profile) => {
    const { tokens, expiresAt } = await read(redis, profile);
    return expiresAt > now() ? tokens.access_token : undefined;
  };
  const refresh = async (profile) => {
    const result = await auth(providerOf({ redis, profile, now, discovery }), { serverUrl: server, fetchFn });
    if (result !== "AUTHORIZED") throw new Error("a login is required");
  };
  return async (profile) => {
    const token = await living(profile);
    if (token !== undefined) return token;
    return lock(profile, async () => {
      // Another process may have refreshed while this one waited.
      if ((await living(profile)) === undefined) {
        await refresh(profile).catch(async (error) => {
          // One that lost a race has no error if the winner's token is there.
          if ((await living(profile)) === undefined) throw error;
        });
      }
      return living(profile);
    });
  };
}

/** Without `invalidateCredentials`, so that the loser of a race does not remove the tokens of the winner. */
function providerOf({ redis, profile, now, discovery }) {
  return {
    redirectUrl: "http://127.0.0.1:49152/callback",
    clientMetadata: { redirect_uris: ["http://127.0.0.1:49152/callback"] },
    clientInformation: async () => (await read(redis, profile)).client,
    tokens: async () => (await read(redis, profile)).tokens,
    saveTokens: async (tokens) => {
      const record = await read(redis, profile);
      await write(redis, profile, { ...record, tokens, expiresAt: now() + tokens.expires_in * 1000 });
    },
    discoveryState: () => discovery.state,
    saveDiscoveryState: (state) => {
      discovery.state = state;
    },
    saveCodeVerifier: () => {},
    redirectToAuthorization: () => {},
  };
}
