import { isLoopbackHost } from "../../../http/address.js";
import { parseUrl } from "../../../http/url.js";
import type { Facts } from "./fields.js";
import type { Finding } from "./model.js";
import { dateOf, numberText } from "./numbers.js";
import { distanceKm } from "./travel.js";

/** The result of a rule: undefined if the device lacks the data, false for no finding, else a short detail. */
export type Judgement = string | false | undefined;

/** A rule that checks one device. */
export interface Rule extends Pick<Finding, "code" | "title" | "severity" | "why" | "action"> {
  /** @param now Unix seconds */
  judge(facts: Facts, now: number): Judgement;
}

/** Below this distance, an error of the location database is more likely than travel. */
const LEAST_DISTANCE_KM = 100;
const FASTEST_KM_PER_HOUR = 1000;
const STALE_DAYS = 90;
const DAY_SECONDS = 86_400;
const NO_REVOCATION = "The service has no operation that revokes a device: ask its operator";

/** The rules. */
export const RULES: readonly Rule[] = [
  {
    code: "impossible_travel",
    title: "Impossible travel",
    severity: "high",
    action: `Ask the owner whether both places are theirs. ${NO_REVOCATION} if they are not.`,
    why: `First and last seen are at least ${LEAST_DISTANCE_KM} km apart, at more than ${numberText(FASTEST_KM_PER_HOUR)} km/h: faster than a commercial flight. It can be a VPN or a cloud exit, or a credential that two parties use.`,
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
      return now - last.at > STALE_DAYS * DAY_SECONDS
        ? `last seen ${dateOf(Math.floor(last.at / DAY_SECONDS))}`
        : false;
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
  return `${numberText(Math.round(distance))} km in ${time}`;
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
