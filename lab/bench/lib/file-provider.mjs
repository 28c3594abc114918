// The OAuth of the official SDKs, with a provider that stores the login in files.
import { readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { callback, ledToMetadata, OFFICIAL_CLIENT, REDIRECT_URI, TOOLS_LIST } from "./login.mjs";

const NAMES = ["client", "tokens", "verifier", "discovery"];

/** Stores each value in a separate file, replaced atomically. */
function filesIn(folder) {
  const path = (name) => join(folder, `${name}.json`);
  return {
    read(name) {
      try {
        return JSON.parse(readFileSync(path(name), "utf8"));
      } catch (error) {
        if (error.code === "ENOENT") return undefined;
        throw error;
      }
    },
    write(name, value) {
      const temporary = `${path(name)}.${process.pid}`;
      writeFileSync(temporary, JSON.stringify(value), { mode: 0o600 });
      renameSync(temporary, path(name));
    },
    remove: (name) => rmSync(path(name), { force: true }),
  };
}

/** A racer with an official SDK, used like its transport: on 401 `auth()`, then the request again. */
export function officialRacer({ auth, extractWWWAuthenticateParams }) {
  return (serverUrl, folder) => {
    const files = filesIn(folder);
    let asked;
    const provider = {
      redirectUrl: REDIRECT_URI,
      clientMetadata: OFFICIAL_CLIENT,
      clientInformation: () => files.read("client"),
      saveClientInformation: (client) => files.write("client", client),
      tokens: () => files.read("tokens"),
      saveTokens: (tokens) => files.write("tokens", tokens),
      saveCodeVerifier: (verifier) => files.write("verifier", verifier),
      codeVerifier: () => files.read("verifier"),
      discoveryState: () => files.read("discovery"),
      saveDiscoveryState: (state) => files.write("discovery", state),
      redirectToAuthorization(url) {
        asked = url;
      },
      invalidateCredentials(scope) {
        for (const name of NAMES) if (scope === "all" || scope === name) files.remove(name);
      },
    };
    const send = () => {
      const token = provider.tokens()?.access_token;
      const authorization = token === undefined ? {} : { authorization: `Bearer ${token}` };
      return fetch(serverUrl, { ...TOOLS_LIST, headers: { ...TOOLS_LIST.headers, ...authorization } });
    };
    const authorize = async (refused, more = {}) => {
      const { resourceMetadataUrl, scope } = extractWWWAuthenticateParams(refused);
      return auth(provider, { serverUrl, resourceMetadataUrl, scope, fetchFn: ledToMetadata, ...more });
    };
    return {
      async login() {
        const refused = await send();
        await authorize(refused);
        const authorizationCode = (await callback(asked.href)).get("code");
        if ((await authorize(refused, { authorizationCode })) !== "AUTHORIZED") throw new Error("no login");
      },
      async call() {
        const response = await send();
        if (response.status !== 401) return response;
        return (await authorize(response)) === "AUTHORIZED" ? send() : undefined;
      },
    };
  };
}
