import { type Command, Option } from "commander";
import { type AgentAuthError, usageError } from "../../errors.js";
import type { GrantFlag } from "../../oauth/machine/grant-strategies.js";
import { flagFor, type LoginFlags, loginSettings } from "../../profile/login-settings.js";
import { addFlags, collectRepeated, type FlagRow } from "./values.js";

/** The flags of every command that can use a machine grant. */
export interface MachineGrantFlags extends Pick<LoginFlags, "clientId" | "clientSecretFile" | "privateKey" | "issuer"> {
  grant?: GrantFlag;
  assertion?: string;
  assertionAudience?: string;
  assertionHeader?: string[];
  idpTokenEndpoint?: string;
  idpClientId?: string;
  /** The issuer of an identity provider, of `login` and `logout`; true for the one that a login is stored at. */
  idp?: string | true;
}

type GrantFlagRow = readonly [flags: string, description: string, required?: "required"];

/** The flags that belong to one grant: how each is typed, its help, and whether the grant requires it. */
const FLAGS_OF_GRANT: Readonly<Record<GrantFlag, readonly GrantFlagRow[]>> = {
  "client-credentials": [],
  "jwt-bearer": [
    [
      "--assertion <source>",
      "Where the assertion is (jwt-bearer): file:<path>, env:<name>, exec:<command>, url:<address>, github-actions, kubernetes, gcp, azure or spiffe",
      "required",
    ],
    ["--assertion-audience <aud>", "Audience that it must have (default: the issuer)"],
    ["--assertion-header <name: value>", "Header for --assertion url:<address> (repeatable; a secret by reference)"],
  ],
  "id-jag": [
    [
      "--idp-token-endpoint <url>",
      "Token endpoint of the identity provider (id-jag; ID token: AGENTAUTH_ID_TOKEN)",
      "required",
    ],
    ["--idp-client-id <id>", "Client ID there (id-jag; secret: AGENTAUTH_IDP_CLIENT_SECRET)", "required"],
  ],
};

const GRANT_FLAGS = Object.keys(FLAGS_OF_GRANT) as GrantFlag[];

/** Adds the flags of a machine grant; those of its client are settings of a login. */
export function addMachineGrantFlags(command: Command): Command {
  return addFlags(command, "Machine grants:", [
    ["--grant <grant>", "Get the token without a login (jwt-bearer needs no --client-id)", GRANT_FLAGS],
    ...Object.values(FLAGS_OF_GRANT).flatMap((rows) =>
      rows.map(
        ([flags, description]): FlagRow =>
          flags.includes("-header ") ? [flags, description, collectRepeated] : [flags, description],
      ),
    ),
  ]);
}

/** The option of a flag, as the parser names it. */
function optionName(flags: string): keyof MachineGrantFlags {
  return new Option(flags).attributeName() as keyof MachineGrantFlags;
}

/** Flags whose value must not be empty, as that of an unset shell variable is. */
const NON_EMPTY = ["clientId", "issuer", "assertionAudience", "idpClientId"] as const;

/** Files that can be standard input, which only one of them can read. */
const FROM_STDIN = ["clientSecretFile", "privateKey", "subjectTokenFile"] as const;

type CheckedFlags = MachineGrantFlags &
  Partial<Record<keyof LoginFlags | (typeof FROM_STDIN)[number], unknown>> & { login?: boolean };

/** The flag that reads a secret from standard input; undefined if there is none. */
export function stdinFlag(flags: object): string | undefined {
  const found = FROM_STDIN.find((name) => (flags as CheckedFlags)[name] === "-");
  return found && flagFor(found);
}

/**
 * Checks that the flags of clients and grants go together.
 *
 * @throws `AgentAuthError` `usage`: the message names both flags
 */
export function checkMachineGrantFlags(flags: CheckedFlags): void {
  const { grant } = flags;
  const empty = NON_EMPTY.find((name) => flags[name] === "");
  if (empty !== undefined) throw usageError(`${flagFor(empty)} is empty`, "give it a value, or leave it out");
  for (const wanted of GRANT_FLAGS.filter((one) => one !== grant)) {
    const found = FLAGS_OF_GRANT[wanted]
      .map(([typed]) => optionName(typed))
      // A login at an identity provider takes the client there as well.
      .find((name) => flags[name] !== undefined && !(flags.idp !== undefined && name === "idpClientId"));
    if (found !== undefined) throw flagWithoutEffect(flagFor(found), `--grant ${wanted}`, grant);
  }
  if (flags.privateKey !== undefined && flags.clientSecretFile !== undefined)
    throw conflictingFlags(
      "--private-key",
      "--client-secret-file",
      "a client authenticates with a key or with a secret",
    );
  if (flags.privateKey !== undefined && flags.clientId === undefined)
    throw missingFlag("--client-id <id>", "--private-key");
  const [first, second] = FROM_STDIN.filter((name) => flags[name] === "-").map(flagFor);
  if (first !== undefined && second !== undefined)
    throw conflictingFlags(`${first} -`, `${second} -`, "only one of them can read standard input");
  if (grant !== undefined) checkGrant(flags, grant);
}

function checkGrant(flags: CheckedFlags, grant: GrantFlag): void {
  const name = `--grant ${grant}`;
  const ofLogin = loginSettings().find((one) => one.isInteractive && Reflect.get(flags, one.name) !== undefined);
  const why = "a machine grant has no interactive login";
  if (ofLogin !== undefined) throw conflictingFlags(name, flagFor(ofLogin.name), why);
  if (flags.login === true) throw conflictingFlags(name, "--login", why);
  if (flags.clientId === undefined && grant !== "jwt-bearer") throw missingFlag("--client-id <id>", name);
  if (flags.clientId === undefined && flags.clientSecretFile !== undefined)
    throw missingFlag("--client-id <id>", "--client-secret-file");
  for (const [typed, , required] of FLAGS_OF_GRANT[grant])
    if (required && flags[optionName(typed)] === undefined) throw missingFlag(typed, name);
}

function flagWithoutEffect(flag: string, wanted: string, grant: string | undefined): AgentAuthError {
  const found = grant === undefined ? "without it" : `with --grant ${grant}`;
  return usageError(`${flag} goes with ${wanted}, and has no effect ${found}`, `add ${wanted}, or leave ${flag} out`);
}

function conflictingFlags(one: string, other: string, why: string): AgentAuthError {
  return usageError(`${one} and ${other} do not go together: ${why}`, "leave out one of the two");
}

function missingFlag(flag: string, for_: string): AgentAuthError {
  return usageError(`${for_} needs ${flag}`, `add ${flag}`);
}
