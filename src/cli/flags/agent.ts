import { type Command, Option } from "commander";
import { AgentAuthError } from "../../errors.js";
import type { DpopPolicy } from "../../oauth/dpop/dpop.js";
import type { GlobalFlags } from "./global.js";
import { addMachineGrantFlags, type MachineGrantFlags } from "./grant.js";
import type { OutputFlags } from "./output.js";
import { addOverrides } from "./policy.js";
import { seconds, wholeNumber } from "./values.js";

/** The flags of every command that may sign somebody in. */
export interface AgentFlags extends GlobalFlags, MachineGrantFlags {
  scope?: string;
  clientMetadataUrl?: string;
  flow?: "browser" | "device" | "paste";
  browser?: string;
  redirectHost?: "127.0.0.1" | "localhost";
  redirectPort?: number;
  loginTimeout?: number;
  resource?: string;
  dpop?: DpopPolicy;
  accountHint?: string;
  allowMissingPkceMetadata?: boolean;
  allowPrivateNetwork?: boolean;
  allowCrossOriginMetadata?: boolean;
  allowCrossOriginEndpoints?: boolean;
  legacyDiscovery?: boolean;
  strictResource?: boolean;
  sameOriginEndpoints?: boolean;
  trustNamedIssuer?: boolean;
  login?: boolean;
}

const SIGN_IN = "Sign-in:";

/**
 * Adds the flags of {@link AgentFlags} but `--login`.
 *
 * @param which `sign-in` leaves out `--scope` and `--resource`, for a command to which they mean something else
 */
export function addAgentFlags(command: Command, which: "all" | "sign-in" = "all"): Command {
  addMachineGrantFlags(addOverrides(command)).addOption(
    new Option(
      "--trust-named-issuer",
      "bind --client-id to the issuer that the server names, where it is bound to none",
    ).helpGroup("The client:"),
  );
  refuseContrary(command);
  return which === "all" ? addWishes(addSignIn(command)) : addSignIn(command);
}

/** To the parser `--login` and `--no-login` are one option of which the last word counts. */
function refuseContrary(command: Command): void {
  const given = new Set<string>();
  for (const name of ["login", "no-login"]) {
    command.on(`option:${name}`, () => {
      if (given.add(name).size === 1) return;
      throw new AgentAuthError("usage", "--login and --no-login do not go together", {
        class: "usage",
        hint: "leave out one of the two",
      });
    });
  }
}

function addWishes(command: Command): Command {
  return command
    .addOption(new Option("--scope <scopes>", "scopes to ask for, in place of the server's").helpGroup(SIGN_IN))
    .addOption(new Option("--resource <uri>", "the resource to name, in place of the server's").helpGroup(SIGN_IN));
}

function addSignIn(command: Command): Command {
  return command
    .addOption(
      new Option("--client-metadata-url <url>", "the address of this client's metadata document").helpGroup(SIGN_IN),
    )
    .addOption(new Option("--flow <flow>", "how to sign in").choices(["browser", "device", "paste"]).helpGroup(SIGN_IN))
    .addOption(new Option("--browser <command>", 'the browser to start, or "none"').helpGroup(SIGN_IN))
    .addOption(
      new Option("--redirect-host <host>", "the host name in the callback address")
        .choices(["127.0.0.1", "localhost"])
        .helpGroup(SIGN_IN),
    )
    .addOption(
      new Option("--redirect-port <port>", "the callback's port (default: a free one)")
        .argParser(wholeNumber(1, 65_535))
        .helpGroup(SIGN_IN),
    )
    .addOption(
      new Option("--login-timeout <seconds>", "how long the person may take (default 300)")
        .argParser(seconds)
        .helpGroup(SIGN_IN),
    )
    .addOption(new Option("--account-hint <account>", "the account to sign in with").helpGroup(SIGN_IN))
    .addOption(
      new Option("--dpop <policy>", "bind tokens to a key of this machine (default auto: where the server needs it)")
        .choices(["off", "auto", "required"] satisfies DpopPolicy[])
        .helpGroup(SIGN_IN),
    );
}

/** The values of `token --format`. */
export const TOKEN_FORMATS = ["raw", "header", "headers-json", "json", "env", "k8s", "git", "bazel"] as const;

/** What `token` was told. */
export interface TokenFlags extends Omit<AgentFlags, "output"> {
  url: string;
  /** What git or bazel wants of a credential helper. */
  operation?: string;
  format?: (typeof TOKEN_FORMATS)[number];
  minTtl?: number;
  forceRefresh?: boolean;
  /** Whether an agent runs it and no flag says how the user is reached: a login is begun, and not waited for. */
  isForAgent?: boolean;
  /** `--no-wait` gives false; `--wait <id>` gives the id. */
  wait?: boolean | string;
  output?: "text" | "json";
  json?: boolean;
}

/** What a command about a stored login was told. */
export interface StoredLoginFlags extends AgentFlags, OutputFlags {
  url?: string;
  all?: boolean;
}
