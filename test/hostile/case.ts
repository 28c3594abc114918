import type { Outcome } from "../../src/cli/runtime/exit-codes.js";
import type { ErrorCode } from "../../src/error-codes.js";
import type { AgentClientOptions } from "../../src/oauth/agent.js";
import type { Canary } from "./kit/canaries.js";
import type { Kit, RunOptions, World } from "./kit/kit.js";
import type { User } from "./kit/user.js";
import type { Run } from "./kit/watched.js";

/** One hostile or faulty input, and its required outcome. */
export interface HostileCase {
  /** The row of the table that the site has. */
  readonly id: string;
  /** The hostile input, as the table names it. */
  readonly input: string;
  /** What the program does about it, as the table names it. */
  readonly result: string;
  /** The outcome of the command: `ok`, the class of the error, or the signal. */
  readonly outcome: Outcome;
  /** Its outcomes in the library, where the `fetch` of some versions of Node fails before ours refuses. Default: `outcome`. */
  readonly inLibrary?: readonly Outcome[];
  /** The code of the library's error. */
  readonly code?: ErrorCode | undefined;
  /** Parts that the message and the hint must contain. */
  readonly says?: readonly (string | RegExp)[] | ((kit: Kit) => readonly (string | RegExp)[]);
  /** Exactly the requests that are sent, such as `mcp POST /mcp`; one that ends in `?` may be sent. */
  readonly requests?: readonly string[];
  /** How often some of the requests are sent. */
  readonly times?: Readonly<Record<string, number>>;
  /**
   * What must stay unchanged, byte by byte: the whole store, or only the logins if the case registers a client first.
   * Default: the whole store, if the command fails.
   */
  readonly store?: "same" | "logins" | "any";
  /** The secrets that the command prints on purpose. */
  readonly prints?: readonly Canary[];
  /** Limits in seconds and megabytes. Default 15 and 150. */
  readonly seconds?: number;
  readonly megabytes?: number;
  /** Time limit of the whole case in seconds, for cases with several runs. Default 120. */
  readonly limit?: number;

  /** Default `loopback`. */
  readonly world?: World;
  /** Prepares the servers and the folder. */
  readonly arrange?: (kit: Kit) => unknown;
  /** The command. Default `login`. */
  readonly command?: "login" | "token" | "devices" | ((kit: Kit) => readonly string[]);
  readonly flags?: readonly string[];
  /** The flags as options of the library; a case with flags and without options runs the command only. */
  readonly options?: Partial<AgentClientOptions>;
  /** Timeout of a request in seconds. */
  readonly timeout?: number;
  /**
   * How many times as fast the clock of the case is. Default 1; in the library a quarter for a case without a
   * timeout, which a case that waits for the server or for a retry sets back to 1.
   */
  readonly hurry?: number;
  /** Whether failed requests are retried. Default true. */
  readonly retries?: boolean;
  readonly environment?:
    | Readonly<Record<string, string | undefined>>
    | ((kit: Kit) => Record<string, string | undefined>);
  readonly run?: Omit<RunOptions, "env" | "user">;
  readonly user?: User;
  /** Runs more than one command; returns the run that `outcome` describes. */
  readonly drive?: (kit: Kit) => Promise<Run>;
  /** A library call in place of the command, for inputs that no command line can express. */
  readonly call?: (kit: Kit) => Promise<unknown>;
  /** Checks further conditions; returns those that do not hold. */
  readonly check?: (kit: Kit, run: Run | undefined) => Iterable<string> | Promise<Iterable<string>>;
  /** Why the case cannot run on this machine. */
  readonly impossible?: string | undefined;
  /** Whether the case applies to the command line only. */
  readonly cliOnly?: boolean;
}

const WELL_KNOWN = "mcp GET /.well-known/oauth-protected-resource";

/** The requests of a login, up to each of its steps. */
export const UP_TO_CHALLENGE = ["mcp POST /mcp"];
export const UP_TO_RESOURCE = [...UP_TO_CHALLENGE, `${WELL_KNOWN}/mcp`];
export const WITHOUT_RESOURCE = [...UP_TO_RESOURCE, WELL_KNOWN];
/** The metadata of the MCP server's own origin. */
export const ORIGIN_METADATA = [
  "mcp GET /.well-known/oauth-authorization-server",
  "mcp GET /.well-known/openid-configuration",
];
export const UP_TO_ISSUER = [
  ...UP_TO_RESOURCE,
  "as GET /pool/.well-known/oauth-authorization-server",
  "as GET /.well-known/oauth-authorization-server/pool",
];
export const ALL_METADATA = [
  ...UP_TO_ISSUER,
  "as GET /.well-known/openid-configuration/pool",
  "as GET /pool/.well-known/openid-configuration",
];
export const UP_TO_REGISTRATION = [...UP_TO_ISSUER, "as POST /pool/register"];
export const UP_TO_AUTHORIZATION = [...UP_TO_REGISTRATION, "as GET /pool/authorize"];
export const WHOLE_LOGIN = [...UP_TO_AUTHORIZATION, "as POST /pool/token"];
/** The one request of a refresh. */
export const REFRESH = ["as POST /pool/token"];
/** The one kind of request of a list. */
export const LISTING = ["service GET /api/v1/device"];

/** The names of the conditions that do not hold. */
export function unless(conditions: Readonly<Record<string, boolean>>): string[] {
  return Object.entries(conditions).flatMap(([name, holds]) => (holds ? [] : [`does not hold: ${name}`]));
}
