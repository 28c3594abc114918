import { isLoopbackHost, parseUrl } from "../../../http/address.js";
import { wholeCharacters } from "../../../redact.js";
import { groupThousands, readPath } from "../../output/value.js";
import type { Finding } from "./model.js";

/** The result of a rule: undefined if the device lacks the data, false for no finding, else a short detail. */
type RuleResult = string | false | undefined;

/** A rule that checks one device. */
interface Rule extends Pick<Finding, "code" | "title" | "why" | "action"> {
  /** @param now Unix seconds */
  evaluate(facts: DeviceFacts, now: number, origins: Map<string, number>): RuleResult;
}

/** Devices named as examples of a finding. */
const MOST_EXAMPLES = 10;
/** The least number of devices of one origin for a finding. */
const MANY = 5;
/** Origins that are stored, so that invented ones cannot exhaust memory. */
const MOST_ORIGINS = 50_000;
const STALE_DAYS = 90;
const NO_REVOCATION = "The service has no operation that revokes a device: ask its operator";

/** The most urgent first. */
const RULES: readonly Rule[] = [
  {
    code: "insecure_redirect",
    title: "Redirect without https",
    action: "Register the client again with https addresses, or with loopback addresses for a program.",
    why: "An authorization code that is sent over plain http to another machine, or into a page's own script, can be intercepted (RFC 9700 section 2.6).",
    evaluate: ({ redirectUris }) => {
      if (redirectUris === undefined) return undefined;
      return redirectUris.map(insecurePart).find((part) => part !== undefined) ?? false;
    },
  },
  {
    code: "pkce_optional",
    title: "PKCE not required",
    action: "Register the client again as one that requires PKCE.",
    why: "Without PKCE, anyone with a stolen authorization code can exchange it for a token (RFC 9700 section 2.1.1).",
    evaluate: ({ pkceRequired, authProfile }) => {
      if (pkceRequired === undefined) return undefined;
      return pkceRequired ? false : (authProfile ?? "");
    },
  },
  {
    code: "shared_fingerprint",
    title: "Many devices from one fingerprint",
    action: "Have the program store its registration and use it again.",
    why: `At least ${MANY} devices share one address and one TLS fingerprint; the first ${MANY - 1} of them are not counted. Usually it is one program that registers again at each start; it can be a script that creates devices.`,
    evaluate: evaluateOrigin,
  },
  {
    code: "stale_active",
    title: `Active, but not seen for ${STALE_DAYS} days`,
    why: "An unused device can still log in.",
    action: `${NO_REVOCATION} if it is no longer needed.`,
    evaluate: ({ status, at }, now) => {
      if (status === undefined) return undefined;
      if (status !== "active") return false;
      if (at === undefined) return undefined;
      return now - at > STALE_DAYS * DAY_SECONDS ? `last seen ${dateOf(at)}` : false;
    },
  },
];

/**
 * An origin is an address together with a TLS fingerprint. The fingerprint alone names a program, not a machine, and
 * thousands of devices rightly share it.
 */
function evaluateOrigin({ address, fingerprint }: DeviceFacts, _now: number, origins: Map<string, number>): RuleResult {
  if (address === undefined || fingerprint === undefined) return undefined;
  const origin = `${address} with ${fingerprint}`;
  if (origins.size >= MOST_ORIGINS && !origins.has(origin)) return undefined;
  const count = (origins.get(origin) ?? 0) + 1;
  origins.set(origin, count);
  return count >= MANY ? `device ${count} from ${origin}` : false;
}

/** Schemes that a browser handles itself, without encryption or in the context of the redirecting page. */
const DANGEROUS = new Set(["ws:", "ftp:", "file:", "data:", "blob:", "javascript:", "vbscript:", "about:"]);

/** The scheme and host of an address that codes must not be sent to; other schemes belong to apps (RFC 8252 7.1). */
function insecurePart(address: string): string | undefined {
  const url = parseUrl(address);
  if (url === undefined) return undefined;
  const { protocol, hostname, host } = url;
  if (protocol === "http:") return isLoopbackHost(hostname) ? undefined : `http://${host}`;
  return DANGEROUS.has(protocol) ? protocol : undefined;
}

/** Collects what the rules find on devices. @param now Unix seconds */
export function createFindings(now: number) {
  const origins = new Map<string, number>();
  const rules = RULES.map(({ evaluate, ...text }) => {
    const finding: Finding = { ...text, count: 0, judged: 0, not_judged: 0, examples: [] };
    return { evaluate, finding };
  });
  return {
    add(facts: DeviceFacts): void {
      for (const { evaluate, finding } of rules) addResult(finding, evaluate(facts, now, origins), facts);
    },
    /** The most urgent first. */
    report: () => rules.map(({ finding }) => finding),
  };
}

function addResult(finding: Finding, result: RuleResult, facts: DeviceFacts): void {
  if (result === undefined) {
    finding.not_judged++;
    return;
  }
  finding.judged++;
  if (result === false) return;
  finding.count++;
  const { id, title = null } = facts;
  if (id === undefined || finding.examples.length >= MOST_EXAMPLES) return;
  finding.examples.push({ id, title, detail: result });
}

/** How many devices lack the data, in brackets; empty if none does. */
export function notJudgedText({ judged, not_judged }: Finding): string {
  if (not_judged === 0) return "";
  return ` (${groupThousands(not_judged)} of ${groupThousands(judged + not_judged)} lack the data to check)`;
}

/** What is known of a device and of when it was last seen; undefined for what the service did not say as documented. */
export type DeviceFacts = ReturnType<typeof readFacts>;

/** The longest text that is kept of a field. */
const LONGEST = 200;
/** A clock that is ahead of ours by less is no reason to doubt a time. */
const CLOCK_SKEW_SECONDS = 86_400;

/** Reads what the report needs of a device. Its client secret is never read. @param now Unix seconds */
export function readFacts(device: object, now: number) {
  const text = (path: string) => textOf(readPath(device, path));
  const pkce = readPath(device, "dynamic_client_details.pkce_required");
  return {
    id: text("id"),
    title: text("title"),
    status: text("status"),
    sessionType: text("session_type"),
    client: text("dynamic_client_details.title"),
    authProfile: text("dynamic_client_details.auth_profile"),
    pkceRequired: typeof pkce === "boolean" ? pkce : undefined,
    redirectUris: textsOf(readPath(device, "dynamic_client_details.redirect_uris")),
    at: timeOf(readPath(device, "last_seen.at"), now),
    country: /^[A-Z]{2}$/.exec(text("last_seen.country_code") ?? "")?.[0],
    network: networkOf(readPath(device, "last_seen.asn")),
    address: text("last_seen.remote_ip"),
    fingerprint: text("last_seen.ja4_fingerprint"),
  };
}

/** Unix seconds, after 1970 and not in the future. */
function timeOf(value: unknown, now: number): number | undefined {
  return typeof value === "number" && value > 0 && value <= now + CLOCK_SKEW_SECONDS ? value : undefined;
}

/** An autonomous system by its number. */
function networkOf(value: unknown): string | undefined {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 1 ? `AS${value}` : undefined;
}

function textOf(value: unknown): string | undefined {
  if (typeof value !== "string" || value === "") return undefined;
  return value.length > LONGEST ? `${wholeCharacters(value, LONGEST)}…` : value;
}

/** Undefined for a list in which nothing is text, so that it is not taken for an empty one. */
function textsOf(value: unknown): readonly string[] | undefined {
  if (!Array.isArray(value)) return undefined;
  const texts = value.filter((part): part is string => typeof part === "string");
  return texts.length === 0 && value.length > 0 ? undefined : texts;
}

export const DAY_SECONDS = 86_400;

/** The date, in UTC, of a time in Unix seconds. */
function dateOf(at: number): string {
  return new Date(at * 1000).toISOString().slice(0, 10);
}
