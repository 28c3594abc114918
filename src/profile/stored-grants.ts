/** Machine grants as settings name them, and as they are stored with their tokens so that later commands find them. */

import { isAbsolute, resolve } from "node:path";
import { usageError } from "../errors.js";
import { isJsonObject, parseStrictJson } from "../http/strict-json.js";
import type { StoredGrants } from "../oauth/agent-options.js";
import type { PreRegisteredClient } from "../oauth/client/client-auth.js";
import type { GrantFlag } from "../oauth/machine/grant-strategies.js";
import type { AssertionRequest, MachineGrant } from "../oauth/model/machine-grant.js";
import type { Env } from "../platform/system.js";
import { quote } from "../redact.js";
import { openSource } from "./assertion-sources.js";
import { isReference, namedSecret, secretOrReferenced } from "./secrets.js";

/** What a machine grant is made of: where its proofs are, and no proof. */
export interface GrantRecipe {
  grant: GrantFlag;
  privateKey?: string | undefined;
  assertion?: string | undefined;
  assertionAudience?: string | undefined;
  assertionHeader?: string[] | undefined;
  idpTokenEndpoint?: string | undefined;
  idpClientId?: string | undefined;
  /** The secret itself: a recipe is stored as secrets are. */
  idpClientSecret?: string | undefined;
}

/** The environment of a grant, how it reaches what is not on this machine, and who masks its secrets. */
export interface GrantHost {
  env: Env;
  fetch(): typeof globalThis.fetch;
  onSecret(secret: string): void;
}

const ID_TOKEN_VARIABLE = "AGENTAUTH_ID_TOKEN";

type MakeGrant = (recipe: GrantRecipe, host: GrantHost) => MachineGrant;

const MAKE_GRANT: Readonly<Record<GrantFlag, MakeGrant>> = {
  "client-credentials": () => ({ type: "client_credentials" }),
  "jwt-bearer": ({ assertion = "", assertionAudience: audience, assertionHeader: headers }, host) => {
    const { env } = host;
    const workload = openSource(assertion, { audience, headers }, { env, fetch: host.fetch(), from: "--assertion" });
    const get = async (request: AssertionRequest) => masked((await workload.assertion(request)).trim(), host);
    return { type: "jwt_bearer", ...workload, assertion: get };
  },
  "id-jag": ({ idpTokenEndpoint = "", idpClientId = "", idpClientSecret }, host) => {
    const idp = { tokenEndpoint: idpTokenEndpoint, clientId: idpClientId, clientSecret: idpClientSecret };
    return { type: "id_jag", idToken: () => masked(idTokenInEnvironment(host.env), host), idp };
  },
};

function idTokenInEnvironment(env: Env): string {
  const set = env[ID_TOKEN_VARIABLE];
  if (set !== undefined) return secretOrReferenced(set, ID_TOKEN_VARIABLE, env).replace(/\r?\n$/, "");
  const hint = `give it in ${ID_TOKEN_VARIABLE}, or its file: ${ID_TOKEN_VARIABLE}=file:<path>`;
  throw usageError("--grant id-jag requires the ID token of a user", hint);
}

function masked(secret: string, { onSecret }: GrantHost): string {
  onSecret(secret);
  return secret;
}

/** The machine grant of a recipe. @throws `AgentAuthError` `usage` for a source of assertions that is none */
export function makeGrant(recipe: GrantRecipe, host: GrantHost): MachineGrant {
  return MAKE_GRANT[recipe.grant](recipe, host);
}

/**
 * A recipe as it is stored: later commands may run in another folder.
 *
 * @throws `AgentAuthError` `usage` for a proof on standard input, which no later command can read
 */
export function storedRecipe(recipe: GrantRecipe, folder: string): string {
  const { privateKey: key, assertion } = recipe;
  if (key === "-")
    throw usageError(
      '--private-key "-" reads standard input, which no later command can read again',
      "--private-key <file>",
    );
  const privateKey = key === undefined || isReference(key) || isAbsolute(key) ? key : resolve(folder, key);
  const [, path] = /^file:(.+)$/s.exec(assertion ?? "") ?? [];
  const source = path === undefined ? assertion : `file:${resolve(folder, path)}`;
  return JSON.stringify({ ...recipe, privateKey, assertion: source });
}

/** How stored recipes are read. @param recipe what is stored with the tokens of this run's own machine grant */
export function storedGrants(host: GrantHost, recipe?: string): StoredGrants {
  return {
    recipe,
    async read(text, { clientId, clientSecret }) {
      const stored = readRecipe(text);
      const { privateKey: file } = stored;
      const proof: Partial<PreRegisteredClient> =
        file === undefined ? { clientSecret } : { privateKey: await readKey(file, host.env) };
      const client = clientId === "" ? undefined : { clientId, ...proof };
      return { client, grant: makeGrant(stored, host) };
    },
  };
}

export async function readKey(file: string, env: Env, text?: string) {
  const { readPrivateKey } = await import("../transport/private-key.js");
  const from = `--private-key ${quote(file)}`;
  return readPrivateKey(text ?? namedSecret(file, "--private-key", env), { from });
}

function readRecipe(text: string): GrantRecipe {
  const value = parseStrictJson(text);
  if (isJsonObject(value) && Object.hasOwn(MAKE_GRANT, String(value["grant"]))) return value as unknown as GrantRecipe;
  throw usageError("the stored machine grant is one that this version does not know", "log in again with --grant");
}
