import { type AgentAuthError, usageError } from "../../errors.js";
import type { IdpOptions } from "../../oauth/agent-options.js";
import type { PreRegisteredClient } from "../../oauth/client/client-auth.js";
import type { GrantFlag } from "../../oauth/machine/grant-strategies.js";
import type { AssertionRequest, MachineGrant } from "../../oauth/model/machine-grant.js";
import { networkFetch } from "../../profile/network.js";
import { namedSecret, secretOrReferenced } from "../../profile/secrets.js";
import { quote } from "../../redact.js";
import { readPrivateKey } from "../../transport/private-key.js";
import { flagOf } from "../flags/flag-name.js";
import { checkMachineGrantFlags, type MachineGrantFlags } from "../flags/grant.js";
import type { CommandContext, ContextFlags } from "../runtime/context.js";
import { networkOptions } from "./network.js";

/**
 * The client that the flags name, and its machine grant if they name one, with their secrets from files, standard input
 * and the environment.
 *
 * @throws `AgentAuthError` `usage` for flags that do not go together, `store_failed` for a file that others can read
 */
export async function readGrantInputs(flags: ContextFlags, context: CommandContext) {
  checkMachineGrantFlags(flags);
  const client = flags.clientId === undefined ? undefined : await clientOf(flags.clientId, flags, context);
  const grant = flags.grant && (await READ_GRANT[flags.grant](flags, context));
  return { client, grant };
}

async function clientOf(
  clientId: string,
  flags: MachineGrantFlags,
  context: CommandContext,
): Promise<PreRegisteredClient> {
  const { privateKey: file, keyId } = flags;
  if (file === undefined) {
    const secret = await secretOf(flags, "clientSecretFile", "AGENTAUTH_CLIENT_SECRET", context);
    return { clientId, clientSecret: secret };
  }
  if (/-----BEGIN|^\s*\{/.test(file)) throw keyTyped();
  const from = `--private-key ${quote(file)}`;
  const text = file === "-" ? await context.io.stdin.text() : namedSecret(file, "--private-key", context.io.env);
  return { clientId, privateKey: await readPrivateKey(text, { keyId, from }) };
}

/** The error for a key on the command line; the message does not repeat it. */
function keyTyped(): AgentAuthError {
  return usageError(
    "--private-key: a key must not be on the command line, where other programs can read it and the shell stores it",
    "--private-key <file>, or - for stdin; and revoke the one that was typed here",
  );
}

/** The identity provider that `--idp` names; else the one that a login is stored at. */
export async function readIdp(flags: MachineGrantFlags, context: CommandContext): Promise<IdpOptions | "stored"> {
  const { idp: issuer, idpClientId: clientId } = flags;
  if (typeof issuer !== "string") return "stored";
  if (clientId === undefined) return { issuer };
  const clientSecret = await secretOf(flags, "idpClientSecretFile", "AGENTAUTH_IDP_CLIENT_SECRET", context);
  return { issuer, clientId, clientSecret };
}

type ReadGrant = (flags: ContextFlags, context: CommandContext) => Promise<MachineGrant>;

const READ_GRANT: Readonly<Record<GrantFlag, ReadGrant>> = {
  "client-credentials": async () => ({ type: "client_credentials" }),
  "jwt-bearer": async (flags, context) => {
    const { assertion = "", assertionAudience: audience, assertionHeader: headers } = flags;
    const { env } = context.io;
    const { openSource } = await import("../../profile/assertion-sources.js");
    const fetch = networkFetch(networkOptions(flags, context.settings(), context), context.redactor);
    const workload = openSource(assertion, { audience, headers }, { env, fetch, from: "--assertion" });
    const get = async (request: AssertionRequest) => maskSecret((await workload.assertion(request)).trim(), context);
    return { type: "jwt_bearer", ...workload, assertion: get };
  },
  "id-jag": async (flags, context) => {
    const { idpTokenEndpoint = "", idpClientId = "", idTokenFile: file } = flags;
    const clientSecret = await secretOf(flags, "idpClientSecretFile", "AGENTAUTH_IDP_CLIENT_SECRET", context);
    const idp = { tokenEndpoint: idpTokenEndpoint, clientId: idpClientId, clientSecret };
    if (file !== undefined && file !== "-")
      return {
        type: "id_jag",
        idToken: () => maskSecret(namedSecret(file, "--id-token-file", context.io.env), context),
        idp,
      };
    const idToken = await secretOf(flags, "idTokenFile", "AGENTAUTH_ID_TOKEN", context);
    if (idToken === undefined) {
      throw usageError(
        "--grant id-jag requires the ID token of a user",
        "give it in AGENTAUTH_ID_TOKEN or with --id-token-file <file>",
      );
    }
    return { type: "id_jag", idToken: () => idToken, idp };
  },
};

/** The secret, which no output shows from now on. */
function maskSecret(secret: string, { redactor }: CommandContext): string {
  redactor.add(secret);
  return secret;
}

/**
 * Reads a secret from the file that a flag names, else from the environment; both may have a reference. No output shows it from now on.
 *
 * @throws `AgentAuthError` `store_failed` for a file that others can read
 */
export async function secretOf<Name extends string>(
  flags: { readonly [name in Name]?: string | undefined },
  name: Name,
  variable: string | undefined,
  { io, redactor }: CommandContext,
): Promise<string | undefined> {
  const file = flags[name];
  const set = variable === undefined ? undefined : io.env[variable];
  const read = async () => {
    if (file === "-") return io.stdin.text();
    if (file !== undefined) return namedSecret(file, flagOf(name), io.env);
    return set === undefined || variable === undefined ? undefined : secretOrReferenced(set, variable, io.env);
  };
  const secret = (await read())?.replace(/\r?\n$/, "");
  if (secret !== undefined) redactor.add(secret);
  return secret;
}
