import { closeSync, constants, fstatSync, openSync, readFileSync } from "node:fs";
import { AgentAuthError } from "../../errors.js";
import { readPrivateKey } from "../../node/private-key.js";
import type { PreRegisteredClient } from "../../oauth/client/pre-registered-client.js";
import type { MachineGrant } from "../../oauth/machine/machine-grant.js";
import { quote, shellWord } from "../../redact.js";
import { readSecretFile } from "../config/secret-file.js";
import { checkMachineGrantFlags, type MachineGrantFlags } from "../flags/grant.js";
import type { CommandContext } from "../runtime/context.js";

/** The client that the flags name, and the grant by which it gets its tokens where no person is to. */
export interface GrantInputs {
  client?: PreRegisteredClient;
  grant?: MachineGrant;
}

/**
 * Reads what the flags name, secrets from files, standard input and the environment.
 *
 * @throws `AgentAuthError` `usage` for flags that do not go together, `store_failed` for a file that others can read
 */
export async function readGrantInputs(flags: MachineGrantFlags, context: CommandContext): Promise<GrantInputs> {
  checkMachineGrantFlags(flags);
  if (flags.clientId === undefined) return {};
  const client = await clientOf(flags.clientId, flags, context);
  const grant = await grantOf(flags, context);
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

/** What was typed is not repeated. */
function keyTyped(): AgentAuthError {
  return new AgentAuthError(
    "usage",
    "--private-key: a key must not stand on the command line, where other programs can read it and the shell keeps it",
    { class: "usage", hint: "--private-key <file>, or - for stdin; and have the one that was typed here replaced" },
  );
}

async function grantOf(flags: MachineGrantFlags, context: CommandContext): Promise<MachineGrant | undefined> {
  const { grant, assertionFile = "", idpTokenEndpoint = "", idpClientId = "" } = flags;
  if (grant === undefined) return undefined;
  if (grant === "client-credentials") return { type: "client_credentials" };
  const hidden = (secret: string) => {
    context.redactor.add(secret);
    return secret;
  };
  if (grant === "jwt-bearer") {
    return { type: "jwt_bearer", assertion: () => hidden(readAssertion(assertionFile)) };
  }
  const clientSecret = await secretOf(flags, "idpClientSecretFile", "AGENTAUTH_IDP_CLIENT_SECRET", context);
  const idp = { tokenEndpoint: idpTokenEndpoint, clientId: idpClientId, clientSecret };
  const given = flags.idTokenFile;
  if (given !== undefined && given !== "-")
    return { type: "id_jag", idToken: () => hidden(readSecretFile(given)), idp };
  const idToken = await secretOf(flags, "idTokenFile", "AGENTAUTH_ID_TOKEN", context);
  if (idToken === undefined) {
    throw new AgentAuthError("usage", "--grant id-jag needs the id token of a person", {
      class: "usage",
      hint: "give it in AGENTAUTH_ID_TOKEN or with --id-token-file <file>",
    });
  }
  return { type: "id_jag", idToken: () => idToken, idp };
}

/**
 * A secret that a flag names a file for, else that of the environment; never shown from here on.
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
 * Reads an assertion as platforms write them for their workloads: readable by all who run there, often behind a link. It
 * lives for minutes, so that a file which others could write is what matters.
 */
function readAssertion(path: string): string {
  const complain = (what: string, hint: string, cause?: unknown) =>
    new AgentAuthError("usage", `--assertion-file ${quote(path)} ${what}`, { class: "usage", hint, cause });
  let fd: number;
  try {
    // A pipe that nobody writes to would block for ever.
    fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (cause) {
    throw complain("cannot be read", "name the file that your platform writes the assertion to", cause);
  }
  try {
    const stat = fstatSync(fd);
    if (!stat.isFile()) throw complain("is not an ordinary file", "name a file");
    if (stat.size > MAX_ASSERTION) throw complain(`is larger than ${MAX_ASSERTION} bytes`, "name a file with one JWT");
    if (process.getuid !== undefined && (stat.mode & 0o022) !== 0)
      throw complain("can be written by others", `chmod go-w ${shellWord(path)}`);
    return readFileSync(fd, "utf8");
  } finally {
    closeSync(fd);
  }
}
