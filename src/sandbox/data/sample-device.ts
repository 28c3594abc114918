import { type Draw, drawsFrom, mix, pickFrom } from "./random.js";
import { CLIENTS, type ClientProfile, LATIN_LOCATIONS, LOCATIONS, type SampleLocation } from "./samples.js";
import type { SandboxDevice, SandboxInteraction, SessionType } from "./wire-types.js";

const DAY = 86_400;
const NETWORKS = ["192.0.2", "198.51.100", "203.0.113"];
const SESSIONS: readonly SessionType[] = ["browser", "browser", "api", "mcp", "mcp"];
const JOBS = ["billing-sync", "nightly export", "deploy bot 🚀", "請求同期", "сверка счетов", "تصدير البيانات"];
/** The first devices of a pool are in Latin script, which every terminal and reader can show; the others follow. */
const LATIN_DEVICES = 12;
const LATIN_JOBS = JOBS.slice(0, 3);
const AGENTS = ["coding agent", "Claude Code", "Cursor", "research agent 🤖"];

/** What all devices of a pool share. */
export interface DeviceContext {
  /** The seed of the pool. */
  seed: number;
  /** The moment before which all interactions lie, Unix seconds. */
  anchor: number;
  /** What the ids of the devices begin with. */
  idPrefix: string;
  account_id: string;
  domain_id: string;
  pool_id: string;
}

/** The n-th device of a pool: a pure function of its arguments. */
export function makeDevice(context: DeviceContext, id: string, n: number): SandboxDevice {
  const { anchor, account_id, domain_id, pool_id } = context;
  const draw = drawsFrom(mix(context.seed, n));
  const session_type = pickFrom(draw, SESSIONS);
  const isLatin = n < LATIN_DEVICES;
  const locations = isLatin ? LATIN_LOCATIONS : LOCATIONS;
  const location = pickFrom(draw, locations);
  const client = pickFrom(draw, CLIENTS[session_type]);
  // Most devices were seen lately, few long ago.
  const lastSeenAt = timeBefore(anchor, 400 * DAY * draw(1) ** 3, draw);
  const cameOnce = draw(1) < 0.15;
  const firstSeenAt = cameOnce ? lastSeenAt : timeBefore(lastSeenAt, 300 * DAY * draw(1) ** 2, draw);
  const first_seen = makeInteraction(draw, firstSeenAt, location, client);
  const travelled = !cameOnce && draw(1) < 0.08;
  const last_seen = makeInteraction(draw, lastSeenAt, travelled ? pickFrom(draw, locations) : location, client);
  if (!travelled) Object.assign(last_seen, { asn: first_seen.asn, remote_ip: first_seen.remote_ip });
  if (!cameOnce) last_seen.user_agent = pickFrom(draw, client.agents);
  return {
    account_id,
    domain_id,
    pool_id,
    id,
    dynamic_client_details: makeClientDetails(draw, session_type, client.title),
    first_seen,
    last_seen,
    session_type,
    status: draw(1) < 0.1 ? "revoked" : "active",
    title: titleOf(draw, location, session_type, isLatin ? LATIN_JOBS : JOBS),
    type: "device",
  };
}

/** The title of a device: a numbered job, an agent or a thing, the latter two with their owner. */
function titleOf(
  draw: Draw,
  { owners, things }: SampleLocation,
  session: SessionType,
  jobs: readonly string[],
): string {
  if (session === "api") return `${pickFrom(draw, jobs)} ${String(1 + Math.floor(draw(24))).padStart(2, "0")}`;
  const owner = pickFrom(draw, owners);
  return session === "mcp" ? `${pickFrom(draw, AGENTS)} (${owner})` : `${pickFrom(draw, things)} – ${owner}`;
}

/** Some services send whole seconds, some hundredths: both occur. */
function timeBefore(time: number, seconds: number, draw: Draw): number {
  const at = time - seconds;
  return draw(1) < 0.5 ? Math.floor(at) : Math.floor(at * 100) / 100;
}

function makeInteraction(draw: Draw, at: number, location: SampleLocation, client: ClientProfile): SandboxInteraction {
  return {
    asn: pickFrom(draw, location.asns),
    at,
    city: location.city,
    country_code: location.country,
    ja4_fingerprint: client.ja4,
    lat_long: location.latLong,
    region_code: location.region,
    remote_ip: `${pickFrom(draw, NETWORKS)}.${1 + Math.floor(draw(254))}`,
    timezone: location.timezone,
    user_agent: client.agents[0] ?? "",
  };
}

function makeClientDetails(draw: Draw, session: SessionType, title: string): SandboxDevice["dynamic_client_details"] {
  const isMcp = session === "mcp" || (session === "api" && draw(3) < 1);
  const port = 1024 + Math.floor(draw(64_000));
  const loopback = [`http://127.0.0.1:${port}/callback`, `http://localhost:${port}/oauth/callback`];
  const start = Math.floor(draw(2));
  return {
    auth_profile: isMcp ? "mcp" : "openid",
    client_secret: "<CLIENT_SECRET>",
    pkce_required: isMcp || draw(1) < 0.75,
    redirect_uris:
      session === "browser"
        ? ["https://agents.example.com/browser/callback"]
        : loopback.slice(start, start + 1 + Math.floor(draw(2))),
    title,
  };
}
