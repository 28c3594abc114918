import { isLoopbackHost, parseUrl } from "../../../http/address.js";
import { groupThousands } from "../../output/value.js";
import { DAY_SECONDS, dateOf } from "./charts.js";
import type { Facts, Point } from "./fields.js";
import type { Finding } from "./model.js";

/** The result of a rule: undefined if the device lacks the data, false for no finding, else a short detail. */
type Judgement = string | false | undefined;

/** A rule that checks one device. */
interface Rule extends Pick<Finding, "code" | "title" | "severity" | "why" | "action"> {
  judge(facts: Facts, context: RuleContext): Judgement;
}

/** What the rules know beside a device. */
interface RuleContext {
  /** Unix seconds. */
  now: number;
  /** The devices of each origin so far. */
  origins: Map<string, number>;
  /** The number of distinct origins that are stored. */
  mostOrigins: number;
}

/** Devices named as examples of a finding. */
const MOST_EXAMPLES = 10;
/** The least number of devices of one origin for a finding. */
const MANY = 5;
const MOST_ORIGINS = 50_000;
/** Below this distance, an error of the location database is more likely than travel. */
const LEAST_DISTANCE_KM = 100;
const FASTEST_KM_PER_HOUR = 1000;
const STALE_DAYS = 90;
const NO_REVOCATION = "The service has no operation that revokes a device: ask its operator";

/** The most urgent first. */
const RULES: readonly Rule[] = [
  {
    code: "impossible_travel",
    title: "Impossible travel",
    severity: "high",
    action: `Ask the owner whether both places are theirs. ${NO_REVOCATION} if they are not.`,
    why: `First and last seen are at least ${LEAST_DISTANCE_KM} km apart, at more than ${groupThousands(FASTEST_KM_PER_HOUR)} km/h: faster than a commercial flight. It can be a VPN or a cloud exit, or a credential that two parties use.`,
    judge: judgeTravel,
  },
  {
    code: "insecure_redirect",
    title: "Redirect without https",
    severity: "high",
    action: "Register the client again with https addresses, or with loopback addresses for a program.",
    why: "An authorization code that is sent over plain http to another machine, or into a page's own script, can be intercepted (RFC 9700 section 2.6).",
    judge: ({ redirectUris }) => {
      if (redirectUris === undefined) return undefined;
      return redirectUris.map(insecurePart).find((part) => part !== undefined) ?? false;
    },
  },
  {
    code: "pkce_optional",
    title: "PKCE not required",
    severity: "medium",
    action: "Register the client again as one that requires PKCE.",
    why: "Without PKCE, anyone with a stolen authorization code can exchange it for a token (RFC 9700 section 2.1.1).",
    judge: ({ pkceRequired, authProfile }) => {
      if (pkceRequired === undefined) return undefined;
      return pkceRequired ? false : (authProfile ?? "");
    },
  },
  {
    code: "shared_fingerprint",
    title: "Many devices from one fingerprint",
    severity: "medium",
    action: "Have the program store its registration and use it again.",
    why: `At least ${MANY} devices share one address and one TLS fingerprint; the first ${MANY - 1} of them are not counted. Usually it is one program that registers again at each start; it can be a script that creates devices.`,
    judge: judgeOrigin,
  },
  {
    code: "country_changed",
    title: "Country changed",
    severity: "low",
    action: `Ask the owner. ${NO_REVOCATION} if they do not know the device.`,
    why: "People travel, but copied tokens do too: check whether the owner moved.",
    judge: ({ first, last }) => {
      if (first.country === undefined || last.country === undefined) return undefined;
      return first.country === last.country ? false : `${first.country} → ${last.country}`;
    },
  },
  {
    code: "stale_active",
    title: `Active, but not seen for ${STALE_DAYS} days`,
    severity: "low",
    why: "An unused device can still log in.",
    action: `${NO_REVOCATION} if it is no longer needed.`,
    judge: ({ status, last }, { now }) => {
      if (status === undefined) return undefined;
      if (status !== "active") return false;
      if (last.at === undefined) return undefined;
      return now - last.at > STALE_DAYS * DAY_SECONDS ? `last seen ${dateOf(last.at)}` : false;
    },
  },
];

function judgeTravel({ first, last }: Facts): Judgement {
  if (first.point === undefined || last.point === undefined) return undefined;
  if (first.at === undefined || last.at === undefined || last.at < first.at) return undefined;
  const distance = distanceKm(first.point, last.point);
  const hours = (last.at - first.at) / 3600;
  if (distance < LEAST_DISTANCE_KM || distance <= hours * FASTEST_KM_PER_HOUR) return false;
  const minutes = Math.round(hours * 60);
  const time = minutes < 1 ? "under a minute" : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
  return `${groupThousands(Math.round(distance))} km in ${time}`;
}

/**
 * An origin is an address together with a TLS fingerprint. The fingerprint alone names a program, not a machine, and
 * thousands of devices rightly share it.
 */
function judgeOrigin({ last }: Facts, { origins, mostOrigins }: RuleContext): Judgement {
  const { address, fingerprint } = last;
  if (address === undefined || fingerprint === undefined) return undefined;
  const origin = `${address} with ${fingerprint}`;
  if (origins.size >= mostOrigins && !origins.has(origin)) return undefined;
  const count = (origins.get(origin) ?? 0) + 1;
  origins.set(origin, count);
  return count >= MANY ? `device ${count} from ${origin}` : false;
}

const EARTH_RADIUS_KM = 6371;

/** The distance of two places over the ground, in kilometres: the great circle by the haversine formula. */
export function distanceKm(a: Point, b: Point): number {
  const radians = (degrees: number) => (degrees / 180) * Math.PI;
  const haversine = (x: number, y: number) => Math.sin(radians(y - x) / 2) ** 2;
  const narrowing = Math.cos(radians(a.latitude)) * Math.cos(radians(b.latitude));
  const chord = haversine(a.latitude, b.latitude) + narrowing * haversine(a.longitude, b.longitude);
  // Rounding can carry it past 1 for places that are opposite each other.
  return 2 * EARTH_RADIUS_KM * Math.asin(Math.min(1, Math.sqrt(chord)));
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

/**
 * Collects what the rules find on devices.
 *
 * @param now Unix seconds
 */
export function createFindings(now: number, mostOrigins = MOST_ORIGINS) {
  const context: RuleContext = { now, origins: new Map(), mostOrigins };
  const rules = RULES.map(({ judge, ...text }) => {
    const finding: Finding = { ...text, count: 0, active: 0, judged: 0, not_judged: 0, examples: [] };
    return { judge, finding };
  });
  return {
    add(facts: Facts): void {
      for (const { judge, finding } of rules) addJudgement(finding, judge(facts, context), facts);
    },
    /** The most urgent first. */
    report: () => rules.map(({ finding }) => finding),
  };
}

function addJudgement(finding: Finding, judgement: Judgement, facts: Facts): void {
  if (judgement === undefined) {
    finding.not_judged++;
    return;
  }
  finding.judged++;
  if (judgement === false) return;
  finding.count++;
  if (facts.status === "active") finding.active++;
  const { id, title = null, client = null, last } = facts;
  if (id === undefined || finding.examples.length >= MOST_EXAMPLES) return;
  finding.examples.push({ id, title, client, country: last.country ?? null, detail: judgement });
}

/** How many of the devices of a finding are active. */
export function activeText({ count, active }: Finding): string {
  return active === count ? "all of them active" : `${groupThousands(active)} of them active`;
}

/** How many devices lack the data, in brackets; empty if none does. */
export function notJudgedText({ judged, not_judged }: Finding): string {
  if (not_judged === 0) return "";
  return ` (${groupThousands(not_judged)} of ${groupThousands(judged + not_judged)} lack the data to check)`;
}
