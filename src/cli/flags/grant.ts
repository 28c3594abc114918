import { type Command, Option } from "commander";
import { AgentAuthError } from "../../errors.js";

/** The values of `--grant`. */
export const GRANTS = ["client-credentials", "jwt-bearer", "id-jag"] as const;

/** The flags of every command that a machine may run with a token of its own. */
export interface MachineGrantFlags {
  clientId?: string;
  clientSecretFile?: string;
  privateKey?: string;
  keyId?: string;
  issuer?: string;
  grant?: (typeof GRANTS)[number];
  assertionFile?: string;
  idpTokenEndpoint?: string;
  idpClientId?: string;
  idpClientSecretFile?: string;
  idTokenFile?: string;
}

const CLIENT = "The client:";
const MACHINE = "Without a person:";

/** Adds the flags of {@link MachineGrantFlags}. */
export function addMachineGrantFlags(command: Command): Command {
  const client = (flags: string, about: string) => new Option(flags, about).helpGroup(CLIENT);
  const machine = (flags: string, about: string) => new Option(flags, about).helpGroup(MACHINE);
  return command
    .addOption(client("--client-id <id>", "a client that the issuer knows; its secret in AGENTAUTH_CLIENT_SECRET"))
    .addOption(client("--client-secret-file <file>", "or in a private file; - reads stdin"))
    .addOption(
      client("--private-key <file>", "what the client signs with instead of a secret, PEM or JWK; - reads stdin"),
    )
    .addOption(client("--key-id <id>", "the key's id, where the issuer knows several"))
    .addOption(client("--issuer <url>", "the only issuer to use; credentials are bound to it (or AGENTAUTH_ISSUER)"))
    .addOption(
      machine("--grant <grant>", "how the token comes, for --client-id; never asks a person").choices([...GRANTS]),
    )
    .addOption(machine("--assertion-file <file>", "jwt-bearer: the assertion, read anew at each use"))
    .addOption(machine("--idp-token-endpoint <url>", "id-jag: where the identity provider gives its word"))
    .addOption(machine("--idp-client-id <id>", "id-jag: our client there; its secret in AGENTAUTH_IDP_CLIENT_SECRET"))
    .addOption(machine("--idp-client-secret-file <file>", "or in a private file; - reads stdin"))
    .addOption(machine("--id-token-file <file>", "id-jag: the id token, if not in AGENTAUTH_ID_TOKEN; - reads stdin"));
}

type Name = keyof MachineGrantFlags;

/** The flag of an option, as it is typed. */
function flagOf(name: string): string {
  return `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}

/** What must be something where it is given: an unset variable of a shell would pass for it. */
const NAMED = ["clientId", "keyId", "issuer", "idpClientId"] as const;

/** What belongs to which grant. */
const OF_GRANT: Readonly<Partial<Record<Name, MachineGrantFlags["grant"]>>> = {
  assertionFile: "jwt-bearer",
  idpTokenEndpoint: "id-jag",
  idpClientId: "id-jag",
  idpClientSecretFile: "id-jag",
  idTokenFile: "id-jag",
};

/** What says how a person signs in, or as whom. */
const OF_PEOPLE = ["accountHint", "clientMetadataUrl", "flow", "redirectHost", "redirectPort", "loginTimeout"] as const;

/** Files that may be standard input, which is there once. */
const FROM_STDIN = [
  "clientSecretFile",
  "privateKey",
  "idpClientSecretFile",
  "idTokenFile",
  "subjectTokenFile",
  "actorTokenFile",
] as const;

type Given = MachineGrantFlags &
  Partial<Record<(typeof OF_PEOPLE)[number] | (typeof FROM_STDIN)[number], unknown>> & {
    login?: boolean;
  };

/** The flag by which a secret is read from standard input; undefined where there is none. */
export function stdinFlag(flags: object): string | undefined {
  const found = FROM_STDIN.find((name) => (flags as Given)[name] === "-");
  return found && flagOf(found);
}

/**
 * Holds the flags about clients and grants against each other.
 *
 * @throws `AgentAuthError` `usage`, which names both flags that do not go together
 */
export function checkMachineGrantFlags(flags: Given): void {
  const { grant } = flags;
  const empty = NAMED.find((name) => flags[name] === "");
  if (empty !== undefined) throw usage(`${flagOf(empty)} is empty`, "give it a value, or leave it out");
  for (const [name, wanted] of Object.entries(OF_GRANT)) {
    if (flags[name as Name] !== undefined && grant !== wanted) throw apart(flagOf(name), `--grant ${wanted}`, grant);
  }
  if (flags.keyId !== undefined && flags.privateKey === undefined) throw missing("--private-key <file>", "--key-id");
  if (flags.privateKey !== undefined && flags.clientSecretFile !== undefined)
    throw contrary("--private-key", "--client-secret-file", "a client proves itself by a key or by a secret");
  if (flags.privateKey !== undefined && flags.clientId === undefined)
    throw missing("--client-id <id>", "--private-key");
  const [first, second] = FROM_STDIN.filter((name) => flags[name] === "-").map(flagOf);
  if (first !== undefined && second !== undefined)
    throw contrary(`${first} -`, `${second} -`, "standard input holds one secret");
  if (flags.assertionFile === "-")
    throw contrary("--assertion-file", "-", "the assertion is read anew at each use, and standard input is there once");
  if (grant !== undefined) checkGrant(flags, grant);
}

function checkGrant(flags: Given, grant: NonNullable<MachineGrantFlags["grant"]>): void {
  const name = `--grant ${grant}`;
  const ofPeople = OF_PEOPLE.find((one) => flags[one] !== undefined);
  const why = "with a grant nobody signs in";
  if (ofPeople !== undefined) throw contrary(name, flagOf(ofPeople), why);
  if (flags.login === true) throw contrary(name, "--login", why);
  if (flags.clientId === undefined) throw missing("--client-id <id>", name);
  if (grant === "jwt-bearer" && flags.assertionFile === undefined) throw missing("--assertion-file <file>", name);
  if (grant !== "id-jag") return;
  if (flags.idpTokenEndpoint === undefined) throw missing("--idp-token-endpoint <url>", name);
  if (flags.idpClientId === undefined) throw missing("--idp-client-id <id>", name);
}

function apart(flag: string, wanted: string, given: string | undefined): AgentAuthError {
  const found = given === undefined ? "without it" : `with --grant ${given}`;
  return usage(`${flag} goes with ${wanted}, and does nothing ${found}`, `add ${wanted}, or leave ${flag} out`);
}

function contrary(one: string, other: string, why: string): AgentAuthError {
  return usage(`${one} and ${other} do not go together: ${why}`, "leave out one of the two");
}

function missing(flag: string, for_: string): AgentAuthError {
  return usage(`${for_} needs ${flag}`, `add ${flag}`);
}

function usage(message: string, hint: string): AgentAuthError {
  return new AgentAuthError("usage", message, { class: "usage", hint });
}
