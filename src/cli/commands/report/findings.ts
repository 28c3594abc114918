import { isLoopbackHost, parseUrl } from "../../../http/address.js";
import { wholeCharacters } from "../../../redact.js";
import { countText, groupThousands, readPath } from "../../output/value.js";

/** The output of `devices report`: the same object for the text, the HTML page and the JSON, which uses these names. */

/** How often each value of a field came. */
export interface Tally {
  /** Distinct values; after 10,000 of them, further ones are not distinguished. */
  distinct: number;
  /** Devices without a valid value. */
  unknown: number;
  /** The most frequent values, in order. */
  top: {
    /** A value. */
    value: string;
    /** The number of devices that have it. */
    count: number;
  }[];
  /** Devices that have one of the other values. */
  others: number;
}

/** The devices that one rule found. */
export interface Finding {
  /** The name of the rule. */
  code: string;
  /** What was found, in a few words. */
  title: string;
  /** Why it matters. */
  why: string;
  /** What can be done about it. */
  action: string;
  /** Devices with this finding. */
  count: number;
  /** Devices with the data to check. */
  judged: number;
  /** Devices without that data. */
  not_judged: number;
  /** Some of the devices. */
  examples: {
    /** The device. */
    id: string;
    /** Its title; null if the service sent none. */
    title: string | null;
    /** What was found on it. */
    detail: string;
  }[];
}

/** A pool's devices in numbers. */
export interface Report {
  type: "device_report";
  /** The pool. */
  pool_id: string;
  /** RFC 3339 in UTC. */
  generated_at: string;
  /** Whether the numbers include every requested device. */
  complete: boolean;
  /** How the numbers were collected. */
  notes: string[];
  /** How many devices there are. */
  devices: {
    /** Devices in the numbers. */
    counted: number;
    /** Devices that were read, including those that do not match the filter. */
    read: number;
    /** Devices in the pool, as the service reports; null if it does not. */
    total: number | null;
    /** Counted devices that were last seen within the last 7 days. */
    seen_within_7_days: number;
    /** Counted devices that were last seen within the last 30 days. */
    seen_within_30_days: number;
  };
  /** The status of each device. */
  status: Tally;
  /** The kind of session of each device. */
  session_type: Tally;
  /** The profile of each device's client. */
  auth_profile: Tally;
  /** ISO 3166-1 alpha-2 codes, of when each device was last seen. */
  countries: Tally;
  /** Autonomous system numbers, of when each device was last seen. */
  networks: Tally;
  /** Titles of the registered clients. */
  clients: Tally;
  /** JA4 fingerprints, of when each device was last seen. */
  fingerprints: Tally;
  /** What the rules found. */
  findings: Finding[];
}

/** The result of a rule: undefined if the device lacks the data, false for no finding, else a short detail. */
type RuleResult = string | false | undefined;

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
      return now - at > STALE_DAYS * DAY_SECONDS
        ? `last seen ${new Date(at * 1000).toISOString().slice(0, 10)}`
        : false;
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
  const text = (path: string) => readText(readPath(device, path));
  const pkce = readPath(device, "dynamic_client_details.pkce_required");
  return {
    id: text("id"),
    title: text("title"),
    status: text("status"),
    sessionType: text("session_type"),
    client: text("dynamic_client_details.title"),
    authProfile: text("dynamic_client_details.auth_profile"),
    pkceRequired: typeof pkce === "boolean" ? pkce : undefined,
    redirectUris: readTexts(readPath(device, "dynamic_client_details.redirect_uris")),
    at: readTime(readPath(device, "last_seen.at"), now),
    country: /^[A-Z]{2}$/.exec(text("last_seen.country_code") ?? "")?.[0],
    network: readNetwork(readPath(device, "last_seen.asn")),
    address: text("last_seen.remote_ip"),
    fingerprint: text("last_seen.ja4_fingerprint"),
  };
}

/** Unix seconds, after 1970 and not in the future. */
function readTime(value: unknown, now: number): number | undefined {
  return typeof value === "number" && value > 0 && value <= now + CLOCK_SKEW_SECONDS ? value : undefined;
}

/** An autonomous system by its number. */
function readNetwork(value: unknown): string | undefined {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 1 ? `AS${value}` : undefined;
}

function readText(value: unknown): string | undefined {
  if (typeof value !== "string" || value === "") return undefined;
  return value.length > LONGEST ? `${wholeCharacters(value, LONGEST)}…` : value;
}

/** Undefined for a list in which nothing is text, so that it is not taken for an empty one. */
function readTexts(value: unknown): readonly string[] | undefined {
  if (!Array.isArray(value)) return undefined;
  const texts = value.filter((part): part is string => typeof part === "string");
  return texts.length === 0 && value.length > 0 ? undefined : texts;
}

export const DAY_SECONDS = 86_400;

/** The numbers of a report as lists: what its text and its page show. */

/** How many devices there are, and when they were seen. */
export function listFacts({ devices, generated_at }: Report): string[] {
  return [
    countText(devices.counted, "device"),
    ...(devices.total === null ? [] : [`${groupThousands(devices.total)} in the pool`]),
    `${groupThousands(devices.seen_within_7_days)} seen within 7 days`,
    `${groupThousands(devices.seen_within_30_days)} within 30 days`,
    `read ${generated_at.slice(0, 16).replace("T", " ")} UTC`,
  ];
}

/** A list of values. */
export interface Chart extends Tally {
  title: string;
}

/** The charts of a report in the order in which they are shown. */
export function buildCharts(report: Report): Chart[] {
  return [
    { title: "Countries, last seen", ...report.countries },
    { title: "Clients", ...report.clients },
    { title: "Networks (autonomous systems), last seen", ...report.networks },
    { title: "TLS fingerprints (JA4), last seen", ...report.fingerprints },
    { title: "Status", ...report.status },
    { title: "Session types", ...report.session_type },
    { title: "Authentication profiles of the clients", ...report.auth_profile },
  ];
}

/** What a chart counts beside its first values, so that the counts add up. */
export function countRest({ top, distinct, others, unknown }: Tally, shown: number): Tally["top"] {
  const hidden = top.slice(shown).reduce((sum, { count }) => sum + count, others);
  const rest = [
    { value: countText(distinct - Math.min(shown, top.length), "other"), count: hidden },
    { value: "unknown", count: unknown },
  ].filter(({ count }) => count > 0);
  return top.length + rest.length > 0 ? rest : [{ value: "none", count: 0 }];
}

/** A part of a whole in percent; a share above zero is never 0%, a share below one never 100%. */
export function shareText(part: number, whole: number): string {
  if (part === 0 || whole === 0) return "0%";
  const percent = (part / whole) * 100;
  if (percent < 1) return "<1%";
  return part < whole && percent > 99 ? ">99%" : `${Math.round(percent)}%`;
}
