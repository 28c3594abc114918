import { AgentAuthError, isAgentAuthError } from "../../errors.js";
import { quote } from "../../redact.js";

/** Replies that another moment or another node would not have: the same call may succeed later. */
const PASSING =
  /(?:^|: -?)(LOADING|CLUSTERDOWN|READONLY|MASTERDOWN|OOM|BUSY|TRYAGAIN|NOREPLICAS|MISCONF|UNBLOCKED|ERR max number of clients)\b/;
/** The code that a reply begins with; the errors of a client are sentences. */
const REPLY = /^([A-Z]{2,}[A-Z\d]*) /;

const ADVICE: Readonly<Record<string, string>> = {
  NOAUTH: "the engine wants a password: set username and password of the client",
  WRONGPASS: "the engine does not accept the user name or the password of the client",
  NOPERM: "let the user of the client run EVALSHA, EVAL, WAIT and what the scripts call, on the keys of the prefix",
  MOVED: "the engine is a cluster: use the cluster client of the package",
  CROSSSLOT: "the engine is a cluster: use the cluster client of the package",
  WRONGTYPE: "another program uses the same keys: choose another prefix",
};

/** What a script is refused with begins with the code ERR. */
const FORBIDDEN = /The user executing the script/;

/** The error for an engine that did not answer in time. */
export function noAnswer(location: string, timeoutMs: number): AgentAuthError {
  const message = `${serverAt(location)} did not answer within ${timeoutMs} ms`;
  return new AgentAuthError("store_unavailable", message, { class: "unavailable", remedy: { action: "retry" } });
}

/** What a client threw, as an error of the store. */
export function redisError(thrown: unknown, location: string): AgentAuthError {
  if (isAgentAuthError(thrown)) return thrown;
  const { message, code } = Object(thrown) as { message?: unknown; code?: unknown };
  const text = typeof message === "string" ? message : "";
  const cause = plainError(thrown, text);
  const reply = REPLY.exec(text)?.[1];
  const passing = PASSING.exec(text)?.[1];
  if (passing === undefined && reply !== undefined) {
    const refusal = `${serverAt(location)} refused an operation of the store: ${quote(text)}`;
    return new AgentAuthError("store_failed", refusal, {
      class: "store",
      hint: ADVICE[FORBIDDEN.test(text) ? "NOPERM" : reply],
      cause,
    });
  }
  const reason = passing ?? (typeof code === "string" ? code : undefined);
  const down = `${serverAt(location)} cannot be used now: ${reason ?? quote(text)}`;
  return new AgentAuthError("store_unavailable", down, { class: "unavailable", remedy: { action: "retry" }, cause });
}

/** The error without what a client hangs on it, such as the arguments of the command: AUTH has the password there. */
function plainError(thrown: unknown, text: string): Error {
  const plain = new Error(quote(text).slice(1, -1));
  const { name, code } = Object(thrown) as { name?: unknown; code?: unknown };
  if (typeof name === "string") plain.name = name;
  return typeof code === "string" ? Object.assign(plain, { code }) : plain;
}

function serverAt(location: string): string {
  return location === "redis" ? "the Redis server" : `the Redis server at ${location}`;
}
