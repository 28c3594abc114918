import { wholeCharacters } from "../../../redact.js";
import { readPath } from "../../output/value.js";

/** What is known of a device; undefined for what the service did not say, or not in its documented form. */
export type Facts = ReturnType<typeof readFacts>;

/** The longest text that is kept of a field. */
const LONGEST = 200;
/** A clock that is ahead of ours by less is no reason to doubt a time. */
const CLOCK_SKEW_SECONDS = 86_400;

/**
 * Reads what the report needs of a device. Its client secret is never read.
 *
 * @param now Unix seconds
 */
export function readFacts(device: object, now: number) {
  const text = (path: string) => textOf(readPath(device, path));
  const pkce = readPath(device, "dynamic_client_details.pkce_required");
  const moment = (path: "first_seen" | "last_seen") => ({
    at: timeOf(readPath(device, `${path}.at`), now),
    country: /^[A-Z]{2}$/.exec(text(`${path}.country_code`) ?? "")?.[0],
    network: networkOf(readPath(device, `${path}.asn`)),
    point: pointOf(readPath(device, `${path}.lat_long`)),
    address: text(`${path}.remote_ip`),
    fingerprint: text(`${path}.ja4_fingerprint`),
  });
  return {
    id: text("id"),
    title: text("title"),
    status: text("status"),
    sessionType: text("session_type"),
    client: text("dynamic_client_details.title"),
    authProfile: text("dynamic_client_details.auth_profile"),
    pkceRequired: typeof pkce === "boolean" ? pkce : undefined,
    redirectUris: textsOf(readPath(device, "dynamic_client_details.redirect_uris")),
    first: moment("first_seen"),
    last: moment("last_seen"),
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

/** A place on earth, in degrees. */
export interface Point {
  latitude: number;
  longitude: number;
}

function pointOf(value: unknown): Point | undefined {
  if (!Array.isArray(value) || value.length !== 2) return undefined;
  const [latitude, longitude] = value as unknown[];
  if (typeof latitude !== "number" || typeof longitude !== "number") return undefined;
  return Math.abs(latitude) <= 90 && Math.abs(longitude) <= 180 ? { latitude, longitude } : undefined;
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
