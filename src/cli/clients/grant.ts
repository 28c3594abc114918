import { usageError } from "../../errors.js";
import type { IdpOptions } from "../../oauth/agent-options.js";
import type { PreRegisteredClient } from "../../oauth/client/client-auth.js";
import type { GrantHost, GrantRecipe } from "../../profile/assertion-sources.js";
import { makeGrant, readKey, storedGrants, storedRecipe } from "../../profile/assertion-sources.js";
import { flagFor } from "../../profile/login-settings.js";
import { networkFetch } from "../../profile/network.js";
import { namedSecret, secretOrReferenced } from "../../profile/secrets.js";
import { checkMachineGrantFlags, type MachineGrantFlags } from "../flags/grant.js";
import type { CommandContext, ContextFlags } from "../runtime/context.js";
import { networkOptions } from "./network.js";

/**
 * The client that the flags name, its machine grant if they name one, and how stored ones are read, with their secrets
 * from files, standard input and the environment.
 *
 * @param isStored whether the grant is stored so that later commands find it
 * @throws `AgentAuthError` `usage` for flags that do not go together, `store_failed` for a file that others can read
 */
export async function readGrantInputs(flags: ContextFlags, context: CommandContext, isStored: boolean) {
  checkMachineGrantFlags(flags);
  const host: GrantHost = {
    env: context.io.env,
    fetch: () => networkFetch(networkOptions(flags, context.settings(), context), context.redactor),
    onSecret: (secret) => context.redactor.add(secret),
  };
  const client = flags.clientId === undefined ? undefined : await readClient(flags.clientId, flags, context);
  if (flags.grant === undefined) return { client, grant: undefined, storedGrants: storedGrants(host) };
  const recipe = buildRecipe({ ...flags, grant: flags.grant }, context);
  const stored = isStored ? storedRecipe(recipe, context.machine?.folder ?? process.cwd()) : undefined;
  const grant = makeGrant(recipe, host);
  // A missing ID token is an error before any request.
  if (grant.type === "id_jag") await grant.idToken();
  return { client, grant, storedGrants: storedGrants(host, stored) };
}

function buildRecipe(flags: MachineGrantFlags & Pick<GrantRecipe, "grant">, context: CommandContext): GrantRecipe {
  const { grant, privateKey, assertion, assertionAudience, assertionHeader } = flags;
  const { idpTokenEndpoint, idpClientId } = flags;
  const idpClientSecret = grant === "id-jag" ? idpSecret(context) : undefined;
  const ofAssertion = { assertion, assertionAudience, assertionHeader };
  return { grant, privateKey, ...ofAssertion, idpTokenEndpoint, idpClientId, idpClientSecret };
}

async function readClient(
  clientId: string,
  flags: MachineGrantFlags,
  context: CommandContext,
): Promise<PreRegisteredClient> {
  const { privateKey: file } = flags;
  if (file === undefined) {
    const secret = await readSecret(flags, "clientSecretFile", "AGENTAUTH_CLIENT_SECRET", context);
    return { clientId, clientSecret: secret };
  }
  // The error for a key on the command line; the message does not repeat it.
  if (/-----BEGIN|^\s*\{/.test(file))
    throw usageError(
      "--private-key: a key must not be on the command line, where other programs can read it and the shell stores it",
      "--private-key <file>, or - for stdin; and revoke the one that was typed here",
    );
  const text = file === "-" ? await context.io.stdin.text() : undefined;
  return { clientId, privateKey: await readKey(file, context.io.env, text) };
}

/** The identity provider that `--idp` names; else the one that a login is stored at. */
export function readIdp(flags: MachineGrantFlags, context: CommandContext): IdpOptions | "stored" {
  const { idp: issuer, idpClientId: clientId } = flags;
  if (typeof issuer !== "string") return "stored";
  if (clientId === undefined) return { issuer };
  return { issuer, clientId, clientSecret: idpSecret(context) };
}

function idpSecret(context: CommandContext): string | undefined {
  return secretInEnvironment("AGENTAUTH_IDP_CLIENT_SECRET", context);
}

/**
 * Reads a secret from the file that a flag names, else from the environment; both may have a reference. No output shows it from now on.
 *
 * @throws `AgentAuthError` `store_failed` for a file that others can read
 */
export async function readSecret<Name extends string>(
  flags: { readonly [name in Name]?: string | undefined },
  name: Name,
  variable: string,
  context: CommandContext,
): Promise<string | undefined> {
  const file = flags[name];
  const { io } = context;
  if (file === undefined) return secretInEnvironment(variable, context);
  return hidden(file === "-" ? await io.stdin.text() : namedSecret(file, flagFor(name), io.env), context);
}

function secretInEnvironment(variable: string, context: CommandContext): string | undefined {
  const { env } = context.io;
  const set = env[variable];
  return set === undefined ? undefined : hidden(secretOrReferenced(set, variable, env), context);
}

function hidden(text: string, { redactor }: CommandContext): string {
  const secret = text.replace(/\r?\n$/, "");
  redactor.add(secret);
  return secret;
}
