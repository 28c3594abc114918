import { closeSync, constants, fstatSync, openSync, readFileSync } from "node:fs";
import { AgentAuthError } from "../../errors.js";
import type { IdpOptions } from "../../oauth/agent-options.js";
import type { PreRegisteredClient } from "../../oauth/client/pre-registered-client.js";
import type { GrantFlag } from "../../oauth/machine/grant-strategies.js";
import type { MachineGrant } from "../../oauth/model/machine-grant.js";
import { changingMode } from "../../platform/shell.js";
import { readSecretFile } from "../../profile/secrets.js";
import { quote } from "../../redact.js";
import { readPrivateKey } from "../../transport/private-key.js";
import { checkMachineGrantFlags, type MachineGrantFlags } from "../flags/grant.js";
import type { CommandContext } from "../runtime/context.js";

/** The client that the flags name, and its machine grant if they name one. */
export interface GrantInputs {
  client?: PreRegisteredClient;
  grant?: MachineGrant;
}

/**
 * Reads the secrets that the flags name from files, standard input and the environment.
 *
 * @throws `AgentAuthError` `usage` for flags that do not go together, `store_failed` for a file that others can read
 */
export async function readGrantInputs(flags: MachineGrantFlags, context: CommandContext): Promise<GrantInputs> {
  checkMachineGrantFlags(flags);
  if (flags.clientId === undefined) return {};
  const client = await clientOf(flags.clientId, flags, context);
  const grant = flags.grant && (await READ_GRANT[flags.grant](flags, context));
  return { client, ...(grant && { grant }) };
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
  const text = file === "-" ? await context.io.stdin.text() : readSecretFile(file);
  return { clientId, privateKey: await readPrivateKey(text, { keyId, from }) };
}

/** The error for a key on the command line; the message does not repeat it. */
function keyTyped(): AgentAuthError {
  return new AgentAuthError(
    "usage",
    "--private-key: a key must not be on the command line, where other programs can read it and the shell stores it",
    { class: "usage", hint: "--private-key <file>, or - for stdin; and revoke the one that was typed here" },
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

type ReadGrant = (flags: MachineGrantFlags, context: CommandContext) => Promise<MachineGrant>;

const READ_GRANT: Readonly<Record<GrantFlag, ReadGrant>> = {
  "client-credentials": async () => ({ type: "client_credentials" }),
  "jwt-bearer": async ({ assertionFile = "" }, context) => ({
    type: "jwt_bearer",
    assertion: () => masked(readAssertion(assertionFile), context),
  }),
  "id-jag": async (flags, context) => {
    const { idpTokenEndpoint = "", idpClientId = "", idTokenFile: file } = flags;
    const clientSecret = await secretOf(flags, "idpClientSecretFile", "AGENTAUTH_IDP_CLIENT_SECRET", context);
    const idp = { tokenEndpoint: idpTokenEndpoint, clientId: idpClientId, clientSecret };
    if (file !== undefined && file !== "-")
      return { type: "id_jag", idToken: () => masked(readSecretFile(file), context), idp };
    const idToken = await secretOf(flags, "idTokenFile", "AGENTAUTH_ID_TOKEN", context);
    if (idToken === undefined) {
      throw new AgentAuthError("usage", "--grant id-jag requires the ID token of a user", {
        class: "usage",
        hint: "give it in AGENTAUTH_ID_TOKEN or with --id-token-file <file>",
      });
    }
    return { type: "id_jag", idToken: () => idToken, idp };
  },
};

/** The secret, which no output shows from now on. */
function masked(secret: string, { redactor }: CommandContext): string {
  redactor.add(secret);
  return secret;
}

/**
 * Reads a secret from the file that a flag names, else from the environment. No output shows it from now on.
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
  const fromEnvironment = variable === undefined ? undefined : io.env[variable];
  const text = file === undefined ? fromEnvironment : file === "-" ? await io.stdin.text() : readSecretFile(file);
  const secret = text?.replace(/\r?\n$/, "");
  if (secret !== undefined) redactor.add(secret);
  return secret;
}

const MAX_ASSERTION = 64 * 1024;

/**
 * Reads an assertion as platforms write it for their workloads: readable by all their processes, often behind a symbolic
 * link. It is valid for minutes, so that the check is for files that others can write.
 */
function readAssertion(path: string): string {
  const complain = (what: string, hint: string, cause?: unknown) =>
    new AgentAuthError("usage", `--assertion-file ${quote(path)} ${what}`, { class: "usage", hint, cause });
  let fd: number;
  try {
    // A pipe without a writer would block for ever.
    fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (cause) {
    throw complain("cannot be read", "name the file that your platform writes the assertion to", cause);
  }
  try {
    const stat = fstatSync(fd);
    if (!stat.isFile()) throw complain("is not an ordinary file", "name a file");
    if (stat.size > MAX_ASSERTION) throw complain(`is larger than ${MAX_ASSERTION} bytes`, "name a file with one JWT");
    if (process.getuid !== undefined && (stat.mode & 0o022) !== 0)
      throw complain("can be written by others", changingMode("go-w", path));
    return readFileSync(fd, "utf8");
  } finally {
    closeSync(fd);
  }
}
