import type { Device, SessionType } from "../types.js";
import { CLIENTS, type ClientProfile, redirectUris } from "./clients.js";
import { PLACES } from "./places.js";
import { fraction, mix } from "./random.js";
import { TITLE_RANKS, TITLE_RUNS, TITLES } from "./titles.js";
import { fromWire, toWire } from "./wire.js";

/** How far back the latest interaction of a device can lie, in hundredths of a second. */
const SEEN_SPAN = 400 * 86_400 * 100;

const FIRST_SEEN_SPAN = 300 * 86_400 * 100;
const REVOKED_SHARE = 0.1;
const ONCE_SEEN_SHARE = 0.15;
const TRAVELLED_SHARE = 0.08;
const NETWORKS = ["192.0.2.", "198.51.100.", "203.0.113."] as const;
const SESSIONS: readonly SessionType[] = ["browser", "browser", "api", "mcp", "mcp"];

/** One number per property that is drawn, so that no two properties follow each other. */
const DRAW = {
  session: 1,
  status: 2,
  title: 3,
  place: 4,
  travelled: 5,
  place2: 6,
  age: 7,
  once: 8,
  first: 9,
  client: 10,
  agent: 11,
  asn: 12,
  asn2: 13,
  ip: 14,
  ip2: 15,
  port: 16,
  profile: 17,
} as const;

/** What all devices of a pool share. */
export interface DeviceContext {
  /** The seed of the pool. */
  seed: number;
  /** The moment before which all interactions lie, Unix seconds. */
  anchor: number;
  account_id: string;
  domain_id: string;
  pool_id: string;
  /** The id of the device of an index. */
  id: (index: number) => string;
}

interface PlaceText {
  start: readonly string[];
  location: string;
  region: string;
  end: string;
}

// Every piece of text that does not vary by device is made once: a page of a thousand devices is then mostly joining.
const PLACE_TEXTS: readonly PlaceText[] = PLACES.map((place) => ({
  start: place.asns.map((asn) => `{"asn":${asn},"at":`),
  location: `,"city":${wireJson(place.city)},"country_code":"${place.country}","ja4_fingerprint":`,
  region: `,"lat_long":${JSON.stringify(place.latLong)},"region_code":"${place.region}","remote_ip":"`,
  end: `","timezone":"${place.timezone}","user_agent":`,
}));
const TITLE_TEXTS: readonly string[] = TITLES.map(wireJson);
const CLIENT_TEXTS = Object.fromEntries(
  Object.entries(CLIENTS).map(([session, profiles]) => [session, profiles.map(textOfClient)]),
) as Record<SessionType, ClientText[]>;

interface ClientText {
  title: string;
  ja4: string;
  agents: string[];
}

function textOfClient(profile: ClientProfile): ClientText {
  return {
    title: wireJson(profile.title),
    ja4: wireJson(profile.ja4),
    agents: profile.agents.map(wireJson),
  };
}

function wireJson(text: string): string {
  return toWire(JSON.stringify(text));
}

/** An element of a list that is never empty, chosen by an unsigned number. */
function pick<T>(list: readonly T[], draw: number): T {
  return list[draw % list.length] as T;
}

function sessionOf(device: number): SessionType {
  return pick(SESSIONS, mix(device, DRAW.session));
}

function revoked(device: number): boolean {
  return fraction(device, DRAW.status) < REVOKED_SHARE;
}

function homeOf(device: number): number {
  return mix(device, DRAW.place) % PLACES.length;
}

function titleOf(device: number): number {
  const { language } = pick(PLACES, homeOf(device));
  const run = TITLE_RUNS[language][sessionOf(device)];
  return run.start + (mix(device, DRAW.title) % run.length);
}

/** How long before the anchor a device was last seen, in hundredths of a second: mostly lately, seldom long ago. */
function ageOf(device: number): number {
  const age = Math.floor(SEEN_SPAN * fraction(device, DRAW.age) ** 3);
  return mix(device, DRAW.age) & 1 ? age : age - (age % 100);
}

function bornOf(device: number, age: number): number {
  return fraction(device, DRAW.once) < ONCE_SEEN_SHARE
    ? age
    : age + Math.floor(FIRST_SEEN_SPAN * fraction(device, DRAW.first) ** 2);
}

/** The fields by which devices are ordered through a number. */
export type RankedField = "last_seen" | "status" | "title";

/**
 * A number below 2^33 that orders the devices of a pool by a field, without making them: for `title` by UTF-16 code
 * units, for `status` by the alphabet, for `last_seen` by time.
 */
export function rankOf(seed: number, index: number, field: RankedField): number {
  const device = mix(seed, index);
  if (field === "status") return revoked(device) ? 1 : 0;
  if (field === "title") return TITLE_RANKS[titleOf(device)] ?? 0;
  return SEEN_SPAN - ageOf(device);
}

/** The JSON text of a device, as {@link toWire} makes it: a pure function of the pool and the index. */
export function deviceText(context: DeviceContext, index: number): string {
  const device = mix(context.seed, index);
  const session = sessionOf(device);
  const home = homeOf(device);
  const travelled = fraction(device, DRAW.travelled) < TRAVELLED_SHARE;
  const away = travelled ? mix(device, DRAW.place2) % PLACES.length : home;
  const client = pick(CLIENT_TEXTS[session], mix(device, DRAW.client));
  const agent = mix(device, DRAW.agent) % client.agents.length;
  const age = ageOf(device);
  const born = bornOf(device, age);
  const asn = mix(device, DRAW.asn);
  const ip = mix(device, DRAW.ip);
  const moved = travelled || born - age > FIRST_SEEN_SPAN / 2;
  const first = interaction(context, client, { place: home, age: born, agent: 0, asn, ip });
  const last = interaction(context, client, {
    place: away,
    age,
    agent: born === age ? 0 : agent,
    asn: travelled ? mix(device, DRAW.asn2) : asn,
    ip: moved ? mix(device, DRAW.ip2) : ip,
  });
  return (
    `{"account_id":"${context.account_id}","domain_id":"${context.domain_id}","pool_id":"${context.pool_id}"` +
    `,"id":"${context.id(index)}","dynamic_client_details":${details(device, session, client)}` +
    `,"first_seen":${first},"last_seen":${last},"session_type":"${session}"` +
    `,"status":"${revoked(device) ? "revoked" : "active"}","title":${TITLE_TEXTS[titleOf(device)] ?? '""'}` +
    `,"type":"device"}`
  );
}

/** {@link deviceText} as an object. */
export function deviceOf(context: DeviceContext, index: number): Device {
  return JSON.parse(fromWire(deviceText(context, index))) as Device;
}

interface Moment {
  place: number;
  age: number;
  agent: number;
  asn: number;
  ip: number;
}

function interaction(context: DeviceContext, client: ClientText, moment: Moment): string {
  const place = pick(PLACE_TEXTS, moment.place);
  const hundredths = context.anchor * 100 - moment.age;
  const at = moment.age % 100 === 0 ? hundredths / 100 : (hundredths / 100).toFixed(2);
  const ip = pick(NETWORKS, moment.ip) + (1 + ((moment.ip >>> 8) % 254));
  return (
    pick(place.start, moment.asn) +
    at +
    place.location +
    client.ja4 +
    place.region +
    ip +
    place.end +
    pick(client.agents, moment.agent) +
    "}"
  );
}

function details(device: number, session: SessionType, client: ClientText): string {
  const profile = mix(device, DRAW.profile);
  const mcp = session === "mcp" || (session === "api" && profile % 3 === 0);
  const port = 1024 + (mix(device, DRAW.port) % 64_000);
  return (
    `{"auth_profile":"${mcp ? "mcp" : "openid"}","client_secret":"<CLIENT_SECRET>"` +
    `,"pkce_required":${mcp || profile % 4 !== 0},"redirect_uris":${redirectUris(session, port, profile >>> 4)}` +
    `,"title":${client.title}}`
  );
}
