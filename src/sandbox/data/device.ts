import type { Device, DeviceStatus, InteractionDetails, SessionType } from "../wire-types.js";
import { CLIENTS, type ClientProfile } from "./clients.js";
import { PLACES, type Place } from "./places.js";
import { Draws, mix } from "./random.js";
import { titleOf } from "./titles.js";

const DAY = 86_400;
const NETWORKS = ["192.0.2", "198.51.100", "203.0.113"];
const SESSIONS: readonly SessionType[] = ["browser", "browser", "api", "mcp", "mcp"];

/** What all devices of a pool share. */
export interface DeviceContext {
  /** The seed of the pool. */
  seed: number;
  /** The moment before which all interactions lie, Unix seconds. */
  anchor: number;
  account_id: string;
  domain_id: string;
  pool_id: string;
}

/** What a device is sorted by, and what the rest of it follows from. */
export interface Outline {
  session_type: SessionType;
  home: Place;
  lastSeenAt: number;
  status: DeviceStatus;
  title: string;
}

/** The first draws of a device: enough to sort a hundred thousand without making them whole. */
export function outlineOf({ seed, anchor }: DeviceContext, index: number, draws = drawsOf(seed, index)): Outline {
  const session_type = draws.pick(SESSIONS);
  const home = draws.pick(PLACES);
  // Mostly lately, seldom long ago.
  const lastSeenAt = timeBefore(anchor, 400 * DAY * draws.fraction() ** 3, draws);
  const status = draws.chance(0.1) ? "revoked" : "active";
  return { session_type, home, lastSeenAt, status, title: titleOf(draws, home.language, session_type) };
}

/** The device of an index: a pure function of the pool and the index. */
export function makeDevice(context: DeviceContext, id: string, index: number): Device {
  const { account_id, domain_id, pool_id, seed } = context;
  const draws = drawsOf(seed, index);
  const { session_type, home, lastSeenAt, status, title } = outlineOf(context, index, draws);
  const client = draws.pick(CLIENTS[session_type]);
  const cameOnce = draws.chance(0.15);
  const firstSeenAt = cameOnce ? lastSeenAt : timeBefore(lastSeenAt, 300 * DAY * draws.fraction() ** 2, draws);
  const first_seen = interaction(draws, firstSeenAt, home, client);
  const travelled = !cameOnce && draws.chance(0.08);
  const seenAgain = travelled ? interaction(draws, lastSeenAt, draws.pick(PLACES), client) : { ...first_seen };
  const user_agent = cameOnce ? first_seen.user_agent : draws.pick(client.agents);
  return {
    account_id,
    domain_id,
    pool_id,
    id,
    dynamic_client_details: clientDetails(draws, session_type, client.title),
    first_seen,
    last_seen: { ...seenAgain, at: lastSeenAt, user_agent },
    session_type,
    status,
    title,
    type: "device",
  };
}

function drawsOf(seed: number, index: number): Draws {
  return new Draws(mix(seed, index));
}

/** Some services send whole seconds, some hundredths: both occur. */
function timeBefore(time: number, seconds: number, draws: Draws): number {
  const at = time - seconds;
  return draws.chance(0.5) ? Math.floor(at) : Math.floor(at * 100) / 100;
}

function interaction(draws: Draws, at: number, place: Place, client: ClientProfile): InteractionDetails {
  return {
    asn: draws.pick(place.asns),
    at,
    city: place.city,
    country_code: place.country,
    ja4_fingerprint: client.ja4,
    lat_long: [...place.latLong],
    region_code: place.region,
    remote_ip: `${draws.pick(NETWORKS)}.${1 + draws.below(254)}`,
    timezone: place.timezone,
    user_agent: client.agents[0] ?? "",
  };
}

function clientDetails(draws: Draws, session: SessionType, title: string): Device["dynamic_client_details"] {
  const isMcp = session === "mcp" || (session === "api" && draws.chance(1 / 3));
  const port = 1024 + draws.below(64_000);
  const loopback = [[`http://127.0.0.1:${port}/callback`], [`http://localhost:${port}/oauth/callback`]];
  return {
    auth_profile: isMcp ? "mcp" : "openid",
    client_secret: "<CLIENT_SECRET>",
    pkce_required: isMcp || draws.chance(0.75),
    redirect_uris:
      session === "browser"
        ? ["https://agents.example.com/browser/callback"]
        : draws.pick([...loopback, loopback.flat()]),
    title,
  };
}
