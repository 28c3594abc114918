// MSAL Node with its distributed cache in Redis. It is made for the issuers of Microsoft: it insists on https and on an ID
// token, and asks for scopes that the sandbox does not have. Its network module makes up for that.
import { ConfidentialClientApplication, DistributedCachePlugin } from "@azure/msal-node";

const ISSUER = "https://issuer.test/tenant";
const SCOPE = "mcp";
/** Parameters of its requests that only the issuers of Microsoft know. */
const FOREIGN = /^(?:scope|claims|client_info|x-.*)$/;

const keyOf = (profile) => `msal:${profile}`;

/** A side of the comparison. */
export const msal = { seed, open, refreshToken };

async function seed(redis, grant, { fetch }) {
  const app = appOf({ redis, ...settingsOf(grant), profile: grant.profile, fetch });
  await redis.set(`${keyOf(grant.profile)}:settings`, JSON.stringify(settingsOf(grant)));
  const stored = { refreshToken: grant.tokens.refreshToken.reveal(), scopes: [SCOPE], forceCache: true };
  await app.acquireTokenByRefreshToken(stored);
}

async function refreshToken(redis, { profile }) {
  const { RefreshToken } = JSON.parse(await redis.get(keyOf(profile)));
  return Object.values(RefreshToken)[0].secret;
}

function open({ redis, fetch, now }) {
  // It has no option for the clock.
  const Real = Date;
  globalThis.Date = class extends Real {
    static now = now;

    constructor(...args) {
      super(...(args.length === 0 ? [now()] : args));
    }
  };
  const apps = new Map();
  return async (profile) => {
    if (!apps.has(profile)) {
      const settings = JSON.parse(await redis.get(`${keyOf(profile)}:settings`));
      apps.set(profile, appOf({ redis, ...settings, profile, fetch }));
    }
    const app = apps.get(profile);
    const [account] = await app.getTokenCache().getAllAccounts();
    return (await app.acquireTokenSilent({ account, scopes: [SCOPE] })).accessToken;
  };
}

function settingsOf({ client, endpoints }) {
  return { clientId: client.clientId, clientSecret: client.clientSecret.reveal(), tokenEndpoint: endpoints.token };
}

function appOf({ redis, clientId, clientSecret, tokenEndpoint, profile, fetch }) {
  const key = keyOf(profile);
  const cache = { get: async (name) => (await redis.get(name)) ?? "", set: (name, value) => redis.set(name, value) };
  const metadata = {
    issuer: ISSUER,
    authorization_endpoint: `${ISSUER}/auth`,
    token_endpoint: `${ISSUER}/token`,
    jwks_uri: `${ISSUER}/jwks`,
  };
  return new ConfidentialClientApplication({
    auth: {
      clientId,
      clientSecret,
      authority: ISSUER,
      knownAuthorities: [new URL(ISSUER).host],
      authorityMetadata: JSON.stringify(metadata),
    },
    cache: { cachePlugin: new DistributedCachePlugin(cache, { getKey: async () => key, extractKey: async () => key }) },
    system: {
      protocolMode: "OIDC",
      networkClient: {
        sendGetRequestAsync: (url) => Promise.reject(new Error(`unexpected request to ${url}`)),
        sendPostRequestAsync: (_, { body }) => post({ tokenEndpoint, clientId, profile, body, fetch }),
      },
    },
  });
}

async function post({ tokenEndpoint, clientId, profile, body, fetch }) {
  const form = new URLSearchParams([...new URLSearchParams(body)].filter(([name]) => !FOREIGN.test(name)));
  const response = await fetch(tokenEndpoint, { method: "POST", body: form });
  const answer = await response.json();
  if (response.ok) {
    const now = Math.floor(Date.now() / 1000);
    const claims = { iss: ISSUER, aud: clientId, sub: profile, oid: profile, tid: "tenant", iat: now, exp: now + 3600 };
    answer.id_token = `${encoded({ alg: "none" })}.${encoded(claims)}.none`;
    answer.client_info = encoded({ uid: profile, utid: "tenant" });
    answer.scope = SCOPE;
  }
  return { headers: Object.fromEntries(response.headers), body: answer, status: response.status };
}

function encoded(value) {
  return Buffer.from(JSON.stringify(value)).toString("base64url");
}
