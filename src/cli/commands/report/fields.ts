/** The fields of a device as the report needs them: each may be missing, null or of another type. */

/** A place on earth, in degrees. */
export interface Point {
  latitude: number;
  longitude: number;
}

/** What is known of a device at one moment; undefined for what the service did not say, or not in its documented form. */
export interface Moment {
  /** Unix seconds, after 1970 and not in the future. */
  at: number | undefined;
  /** ISO 3166-1 alpha-2. */
  country: string | undefined;
  asn: number | undefined;
  point: Point | undefined;
  address: string | undefined;
  fingerprint: string | undefined;
}

/** What is known of a device. Its client secret is never read. */
export interface Facts {
  id: string | undefined;
  title: string | undefined;
  status: string | undefined;
  sessionType: string | undefined;
  client: string | undefined;
  authProfile: string | undefined;
  pkceRequired: boolean | undefined;
  redirectUris: readonly string[] | undefined;
  first: Moment;
  last: Moment;
}

/** The longest text that is kept of a field. */
const LONGEST = 200;
/** A clock that is ahead of ours by less is no reason to doubt a time. */
const CLOCK_SKEW_SECONDS = 86_400;

/**
 * Reads what the report needs of a device.
 *
 * @param now Unix seconds
 */
export function readFacts(device: object, now: number): Facts {
  const client = field(device, "dynamic_client_details");
  const pkce = field(client, "pkce_required");
  return {
    id: textOf(field(device, "id")),
    title: textOf(field(device, "title")),
    status: textOf(field(device, "status")),
    sessionType: textOf(field(device, "session_type")),
    client: textOf(field(client, "title")),
    authProfile: textOf(field(client, "auth_profile")),
    pkceRequired: typeof pkce === "boolean" ? pkce : undefined,
    redirectUris: textsOf(field(client, "redirect_uris")),
    first: momentOf(field(device, "first_seen"), now),
    last: momentOf(field(device, "last_seen"), now),
  };
}

function momentOf(details: unknown, now: number): Moment {
  const at = field(details, "at");
  const country = field(details, "country_code");
  const asn = field(details, "asn");
  const latest = now + CLOCK_SKEW_SECONDS;
  return {
    at: typeof at === "number" && at > 0 && at <= latest ? at : undefined,
    country: typeof country === "string" && /^[A-Z]{2}$/.test(country) ? country : undefined,
    asn: Number.isSafeInteger(asn) && (asn as number) >= 1 ? (asn as number) : undefined,
    point: pointOf(field(details, "lat_long")),
    address: textOf(field(details, "remote_ip")),
    fingerprint: textOf(field(details, "ja4_fingerprint")),
  };
}

function pointOf(value: unknown): Point | undefined {
  if (!Array.isArray(value) || value.length !== 2) return undefined;
  const [latitude, longitude] = value as unknown[];
  if (typeof latitude !== "number" || typeof longitude !== "number") return undefined;
  return Math.abs(latitude) <= 90 && Math.abs(longitude) <= 180 ? { latitude, longitude } : undefined;
}

function field(holder: unknown, key: string): unknown {
  if (typeof holder !== "object" || holder === null || !Object.hasOwn(holder, key)) return undefined;
  return (holder as Record<string, unknown>)[key];
}

function textOf(value: unknown): string | undefined {
  if (typeof value !== "string" || value === "") return undefined;
  return value.length > LONGEST ? `${value.slice(0, LONGEST).replace(/[\ud800-\udbff]$/, "")}…` : value;
}

/** Undefined for a list in which nothing is text, so that it is not taken for an empty one. */
function textsOf(value: unknown): readonly string[] | undefined {
  if (!Array.isArray(value)) return undefined;
  const texts = value.filter((part): part is string => typeof part === "string");
  return texts.length === 0 && value.length > 0 ? undefined : texts;
}
