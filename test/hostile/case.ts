import type { Outcome } from "../../src/cli/runtime/exit-codes.js";
import type { ErrorCode } from "../../src/errors.js";
import type { AgentClientOptions } from "../../src/oauth/agent.js";
import type { Canary } from "./kit/canaries.js";
import type { Kit, RunOptions, World } from "./kit/kit.js";
import type { Person } from "./kit/person.js";
import type { Run } from "./kit/watched.js";

/** One hostile or faulty input, and everything that must and must not come of it. */
export interface HostileCase {
  /** The row of the matrix that it belongs to, with a letter where a row has several. */
  readonly id: string;
  /** What came in, in words for the table. */
  readonly came: string;
  /** What was done about it, in words for the table. */
  readonly done: string;
  /** How the command ends: `ok`, the class of the error, or by which signal. */
  readonly outcome: Outcome;
  /** The code of the library's error. */
  readonly code?: ErrorCode | undefined;
  /** Parts that the message and the hint must have. */
  readonly says?: readonly (string | RegExp)[] | ((kit: Kit) => readonly (string | RegExp)[]);
  /** Exactly the requests that are sent, such as `mcp POST /mcp`; one that ends in `?` may be sent. */
  readonly requests?: readonly string[];
  /** How often some of them are sent. */
  readonly times?: Readonly<Record<string, number>>;
  /**
   * What stays byte by byte as it was: all that is stored, or the logins, where a client may have been registered before
   * the case comes to its point. Default: all, where the command fails.
   */
  readonly store?: "same" | "logins" | "any";
  /** Which secrets the command may print because that is what it is for. */
  readonly prints?: readonly Canary[];
  /** Seconds and megabytes that it may take. Default 15 and 150. */
  readonly seconds?: number;
  readonly megabytes?: number;
  /** Seconds for all of it, where the program is run more than once. Default 120. */
  readonly limit?: number;

  /** Default `loopback`. */
  readonly world?: World;
  /** Makes the servers and the folder what the case is about. */
  readonly arrange?: (kit: Kit) => unknown;
  /** What is run. Default `login`. */
  readonly command?: "login" | "token" | "devices" | ((kit: Kit) => readonly string[]);
  readonly flags?: readonly string[];
  /** The flags as options of the library; where they are left out, and there are flags, it is the command alone. */
  readonly options?: Partial<AgentClientOptions>;
  /** Seconds for a request. */
  readonly timeout?: number;
  /** Whether failures may be repeated. Default true. */
  readonly retries?: boolean;
  readonly environment?:
    | Readonly<Record<string, string | undefined>>
    | ((kit: Kit) => Record<string, string | undefined>);
  readonly run?: Omit<RunOptions, "env" | "person">;
  readonly person?: Person;
  /** More than one command; gives the run that `outcome` is about. */
  readonly drive?: (kit: Kit) => Promise<Run>;
  /** What the library is asked in place of the command: of a program's own making, which no command line can say. */
  readonly call?: (kit: Kit) => Promise<unknown>;
  /** What else must hold; gives what does not. */
  readonly check?: (kit: Kit, run: Run | undefined) => Iterable<string> | Promise<Iterable<string>>;
  /** Why it cannot be tried on this machine, where it cannot. */
  readonly impossible?: string | undefined;
  /** Whether it is about the command line alone. */
  readonly cliOnly?: boolean;
}

const WELL_KNOWN = "mcp GET /.well-known/oauth-protected-resource";

/** The requests of a login, up to each of its steps. */
export const ASKED = ["mcp POST /mcp"];
export const DESCRIBED = [...ASKED, `${WELL_KNOWN}/mcp`];
export const SEARCHED = [...DESCRIBED, WELL_KNOWN];
export const KNOWN = [
  ...DESCRIBED,
  "as GET /pool/.well-known/oauth-authorization-server",
  "as GET /.well-known/oauth-authorization-server/pool",
];
export const UNKNOWN = [
  ...KNOWN,
  "as GET /.well-known/openid-configuration/pool",
  "as GET /pool/.well-known/openid-configuration",
];
export const REGISTERED = [...KNOWN, "as POST /pool/register"];
export const SENT_OFF = [...REGISTERED, "as GET /pool/authorize"];
export const EXCHANGED = [...SENT_OFF, "as POST /pool/token"];
/** The one request of a refresh. */
export const RENEWED = ["as POST /pool/token"];
/** The one kind of request of a list. */
export const LISTED = ["service GET /api/v1/device"];

/** A check that every named condition holds. */
export function unless(conditions: Readonly<Record<string, boolean>>): string[] {
  return Object.entries(conditions).flatMap(([name, holds]) => (holds ? [] : [`not so: ${name}`]));
}
