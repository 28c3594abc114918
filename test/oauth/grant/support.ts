import type { GrantStore } from "../../../src/oauth/model/grant-store.js";
import { plainGrant } from "../../helpers/grant.js";
import { type Reply, type Scene, startScene, type TestIssuer } from "../../helpers/issuer.js";

export const SIGNAL = new AbortController().signal;
export const TOKEN = "/pool/token";
export const HOUR = 3_600_000;
export const refusal: Reply = { status: 400, json: { error: "invalid_grant" } };

/** Holds the responses to requests for tokens until the returned function is called. */
export function holdTokens(issuer: TestIssuer): () => void {
  let release = () => {};
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  issuer.routes[TOKEN] = async (_request, nth) => {
    await released;
    return { json: issuer.tokens(nth) };
  };
  return release;
}

export interface LoggedIn extends Scene {
  key: { profile: string; server: string };
  /** The requests for tokens since the login. */
  refreshes(): number;
  /** What is stored, as plain data. */
  stored(): Promise<ReturnType<typeof plainGrant> | undefined>;
}

/** A scene with a login whose token has expired. */
export async function loggedIn(store?: GrantStore): Promise<LoggedIn> {
  const made = await startScene();
  const scene = store === undefined ? made : { ...made, store, agent: (o = {}) => made.agent({ store, ...o }) };
  await scene.agent().login(scene.mcp.url);
  await scene.clock.sleep(HOUR, SIGNAL);
  const key = { profile: "default", server: scene.mcp.url };
  return {
    ...scene,
    key,
    refreshes: () => scene.issuer.to(TOKEN).length - 1,
    stored: async () => {
      const grant = await scene.store.read(key);
      return grant && plainGrant(grant);
    },
  };
}
