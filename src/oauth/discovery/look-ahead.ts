import { AgentAuthError, isAgentAuthError } from "../../errors.js";
import { optionPath } from "../../http/refuse.js";
import type { AllowRemedy, PolicyOption } from "../../remedy.js";
import type { OAuthHttp } from "../http/http.js";
import type { TraceEntry } from "../http/trace.js";

/**
 * The options that are tried to find out what else is refused: with these, discovery reads nothing but metadata of the
 * origins that it reads from anyway. The others are named, and tried only where the user has set them.
 */
const TRIED = ["allowMissingPkceMetadata", "legacyDiscovery"] as const satisfies readonly PolicyOption[];

type Tried = (typeof TRIED)[number];

/** What a login needs beside what is set. */
export interface LoginNeeds {
  /** An option that disables a check. */
  option: PolicyOption | undefined;
  /** The issuer to register a client with by hand. */
  clientIssuer?: string | undefined;
}

/**
 * The error with all that the user has to set, where more than one check refuses a server, or its issuer registers no
 * clients.
 *
 * @param attempt repeats what failed with these options as well; its result is what the login itself needs
 */
export async function withEveryOption(
  error: unknown,
  attempt: (more: Partial<Record<Tried, true>>) => Promise<LoginNeeds>,
): Promise<unknown> {
  const needed: PolicyOption[] = [];
  let next: LoginNeeds = { option: refusedOption(error) };
  while (next.option !== undefined && !needed.includes(next.option)) {
    needed.push(next.option);
    if (!isTried(next.option)) break;
    const more = Object.fromEntries(needed.filter(isTried).map((name) => [name, true]));
    next = await attempt(more).catch((refusal: unknown) => ({ option: refusedOption(refusal) }));
  }
  const { clientIssuer } = next;
  const [option, ...also] = needed;
  if (!isAgentAuthError(error) || option === undefined || (also.length === 0 && clientIssuer === undefined))
    return error;
  const { code, message, class: kind, status, url, cause } = error;
  const remedy: AllowRemedy = {
    action: "allow",
    option,
    ...(also.length > 0 && { also }),
    ...(clientIssuer !== undefined && { clientIssuer }),
  };
  const checks = also.length > 0 ? "disable these checks" : "disables this check";
  const client = clientIssuer === undefined ? "" : "; and give the client that its issuer knows as client";
  const hint = `if you trust this server, ${needed.map(optionPath).join(" and ")} ${checks} for it${client}`;
  return new AgentAuthError(code, message, { class: kind, status, url, cause, hint, remedy });
}

function isTried(option: PolicyOption): option is Tried {
  return (TRIED as readonly PolicyOption[]).includes(option);
}

function refusedOption(error: unknown): PolicyOption | undefined {
  return isAgentAuthError(error) && error.remedy?.action === "allow" ? error.remedy.option : undefined;
}

/** Reads each document once, so that a second look at a server sends no second request. */
export function readOnce(http: Pick<OAuthHttp, "document">): Pick<OAuthHttp, "document"> {
  const documents = new Map<string, ReturnType<OAuthHttp["document"]>>();
  return {
    document(url, signal) {
      const known = documents.get(url) ?? http.document(url, signal);
      documents.set(url, known);
      return known;
    },
  };
}

type Trace = (entry: TraceEntry) => void;

/** The trace of the first look at a server, and that of a second one: it has only the requests that are new. */
export function traceOnce(trace: Trace): { trace: Trace; traceUnused: Trace } {
  const seen = new Set<string>();
  const note: Trace = (entry) => {
    seen.add(entry.url);
    trace(entry);
  };
  const why = "read to find out what else is refused, and not used";
  return {
    trace: note,
    traceUnused: (entry) => {
      if (!seen.has(entry.url)) note(entry.used ? { ...entry, used: false, why } : entry);
    },
  };
}
