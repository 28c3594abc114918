import { isLoopbackHost, parseUrl } from "../../../http/address.js";
import { groupThousands } from "../../output/value.js";
import { DAY_SECONDS, dateOf } from "./charts.js";
import type { Facts, Point } from "./fields.js";
import type { Finding } from "./model.js";

/** The result of a rule: undefined if the device lacks the data, false for no finding, else a short detail. */
type Judgement = string | false | undefined;

type RuleText = Pick<Finding, "code" | "title" | "severity" | "why" | "action">;

/** A rule that checks one device. */
interface Rule extends RuleText {
  /** @param now Unix seconds */
  judge(facts: Facts, now: number): Judgement;
}

/** Devices named as examples of a finding. */
const MOST_EXAMPLES = 10;
/** The least number of devices of one origin for a finding. */
const MANY = 5;
/** The number of distinct origins that are stored. */
const MOST_ORIGINS = 50_000;
/** Below this distance, an error of the location database is more likely than travel. */
const LEAST_DISTANCE_KM = 100;
const FASTEST_KM_PER_HOUR = 1000;
const STALE_DAYS = 90;
const NO_REVOCATION = "The service has no operation that revokes a device: ask its operator";

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
    judge: ({ status, last }, now) => {
      if (status === undefined) return undefined;
      if (status !== "active") return false;
      if (last.at === undefined) return undefined;
      return now - last.at > STALE_DAYS * DAY_SECONDS ? `last seen ${dateOf(last.at)}` : false;
    },
  },
];

const SHARED_FINGERPRINT: RuleText = {
  code: "shared_fingerprint",
  title: "Many devices from one fingerprint",
  severity: "medium",
  action: "Have the program store its registration and use it again.",
  why: `At least ${MANY} devices share one address and one TLS fingerprint. Usually it is one program that registers again at each start; it can be a script that creates devices.`,
};

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
  const rules = RULES.map(({ judge, ...text }) => ({ judge, finding: emptyFinding(text) }));
  const origins = createSharedOrigins(mostOrigins);
  return {
    add(facts: Facts): void {
      for (const { judge, finding } of rules) addJudgement(finding, judge(facts, now), facts);
      origins.add(facts);
    },
    /** The most urgent first; those of one severity stay in the order of the rules. */
    report(): Finding[] {
      const rank = { high: 0, medium: 1, low: 2 };
      const findings = [...rules.map(({ finding }) => finding), origins.report()];
      return findings.sort((a, b) => rank[a.severity] - rank[b.severity]);
    },
  };
}

function emptyFinding(text: RuleText): Finding {
  return { ...text, count: 0, active: 0, judged: 0, not_judged: 0, examples: [] };
}

function addJudgement(finding: Finding, judgement: Judgement, facts: Facts, mostExamples = MOST_EXAMPLES): void {
  if (judgement === undefined) {
    finding.not_judged++;
    return;
  }
  finding.judged++;
  if (judgement === false) return;
  finding.count++;
  if (facts.status === "active") finding.active++;
  const { id, title = null, client = null, last } = facts;
  if (id === undefined || finding.examples.length >= mostExamples) return;
  finding.examples.push({ id, title, client, country: last.country ?? null, detail: judgement });
}

/**
 * Finds many devices of one origin: an address together with a TLS fingerprint. The fingerprint alone names a program,
 * not a machine, and thousands of devices rightly share it. The examples are one device of each origin.
 */
function createSharedOrigins(mostOrigins: number) {
  const origins = new Map<string, Finding>();
  const all = emptyFinding(SHARED_FINGERPRINT);
  return {
    add(facts: Facts): void {
      const { address, fingerprint } = facts.last;
      const detail = `from ${address} with ${fingerprint}`;
      const isKnown = address !== undefined && fingerprint !== undefined;
      // Once there are too many origins, a device of a further one cannot be judged.
      if (!isKnown || (origins.size >= mostOrigins && !origins.has(detail))) {
        all.not_judged++;
        return;
      }
      all.judged++;
      const origin = origins.get(detail) ?? emptyFinding(SHARED_FINGERPRINT);
      origins.set(detail, origin);
      addJudgement(origin, detail, facts, 1);
    },
    report(): Finding {
      const shared = [...origins.values()].filter(({ count }) => count >= MANY).sort((a, b) => b.count - a.count);
      const sum = (key: "count" | "active") => shared.reduce((total, origin) => total + origin[key], 0);
      const examples = shared.flatMap(({ count, examples }) =>
        examples.map((example) => ({ ...example, detail: `${count} ${example.detail}` })),
      );
      return { ...all, count: sum("count"), active: sum("active"), examples: examples.slice(0, MOST_EXAMPLES) };
    },
  };
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
