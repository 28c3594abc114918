import type { components } from "../../api/schema.gen.js";

/**
 * The wire types of the management interface as the sandbox sends them, derived from `openapi.yaml`: exact, every field
 * present. A client has to read more loosely than this.
 */

/** What kind of list: also the last segment of its path under `/api/v1`. */
export type ResourceName = "pool" | "domain" | "device";

type Schemas = components["schemas"];

/** A documented type with every field there, and nothing null: a server writes more strictly than a client reads. */
type Exact<T> = T extends object ? { [Key in keyof T]-?: Exact<NonNullable<T[Key]>> } : T;

/** One pool of agents inside a domain. Its status is `active`, `paused` or `archived`; the service documents none. */
export type SandboxPool = Exact<Schemas["Pool_Summary"]>;

/** One domain inside an account. Its status is like that of a pool. */
export type SandboxDomain = Exact<Schemas["Domain_Summary"]>;

/** One device of a pool. Its client secret is always the literal `<CLIENT_SECRET>`. */
export type SandboxDevice = Exact<Schemas["Device_Summary"]>;

/** A device at one moment: `at` has up to two decimals, and `remote_ip` is from a range reserved for documentation. */
export type SandboxInteraction = SandboxDevice["first_seen"];

/** How a device reaches the service. */
export type SessionType = SandboxDevice["session_type"];

/** Whether a device may still be used. */
export type DeviceStatus = SandboxDevice["status"];

/**
 * The position of a page in its list. `item_start` and `item_end` are one-based, and 0 on a page without items;
 * `page_index` is `floor(page_offset / page_size) + 1`, also where the offset is no multiple of the page size.
 */
export type SandboxPagination = Omit<Exact<Schemas["PaginationOutput"]>, NullableOffset> & {
  [Key in NullableOffset]: number | null;
};

type NullableOffset = "next_page_offset" | "previous_page_offset";

/** The order that was applied. */
export type SandboxSorting = Exact<Schemas["Sorting"]>;

/** Ascending or descending. Descending is the exact reverse of ascending, ties included. */
export type Direction = SandboxSorting["direction"];

/** A successful list answer. */
export interface ListEnvelope<T> {
  status: "success";
  pagination: SandboxPagination;
  sorting: SandboxSorting;
  summaries: T[];
}

/**
 * Hashes two integers into an unsigned 32-bit one that looks random: all sample data and drawn faults are pure
 * functions of the seed. For a fixed `a` no two `b` below 2^32 give the same result.
 */
export function mix(a: number, b: number): number {
  let h = Math.imul(a ^ 0x9e3779b9, 0x85ebca6b) ^ Math.imul((b + 0x7f4a7c15) | 0, 0xc2b2ae35);
  h = Math.imul(h ^ (h >>> 16), 0x7feb352d);
  h = Math.imul(h ^ (h >>> 15), 0x846ca68b);
  return (h ^ (h >>> 16)) >>> 0;
}

/** The next number from 0 up to, but not including, `limit`. */
export type Draw = (limit: number) => number;

/** Returns a sequence of draws, the same for the same seed. */
function drawsFrom(seed: number): Draw {
  let drawn = 0;
  return (limit) => (mix(seed, drawn++) / 2 ** 32) * limit;
}

function pickFrom<T>(draw: Draw, list: readonly T[]): T {
  return list[Math.floor(draw(list.length))] as T;
}

const BASE = 32;
const DIGITS = 10;
const TAG_DIGITS = 4;

/** What the ids of each kind of object begin with. */
export const ID_PREFIXES = { account: "acc_", domain: "dom_", pool: "pool_", ruleset: "rs_", device: "dev_" } as const;

/** The limit of the numbers in ids, which have a fixed width: as text, ids sort as their numbers do. */
export const ID_LIMIT = BASE ** DIGITS;

/** The most pools whose devices can have ids of their own. */
export const MAX_POOLS = BASE ** TAG_DIGITS;

/** What the ids of the devices of a pool begin with, different for every pool. */
export function deviceIdPrefix(seed: number, pool: number): string {
  return writeId(ID_PREFIXES.device, (mix(seed, MAX_POOLS) ^ pool) & (MAX_POOLS - 1), TAG_DIGITS);
}

/** The id of the n-th object of a kind: the high 32 bits of its number differ for every n. */
export function objectId(seed: number, kind: "account" | "domain" | "pool" | "ruleset", n: number): string {
  const key = mix(seed, kind.length * 256 + kind.charCodeAt(0));
  return writeId(ID_PREFIXES[kind], mix(key, n) * 2 ** 18 + (mix(~key, n) >>> 14));
}

/** The id of a number below {@link ID_LIMIT}. */
export function writeId(prefix: string, number: number, digits = DIGITS): string {
  return prefix + number.toString(BASE).padStart(digits, "0");
}

/** The number in an id; `undefined` where the text is not an id with this prefix. */
export function readId(prefix: string, id: string): number | undefined {
  const number = Number.parseInt(id.slice(prefix.length), BASE);
  return number < ID_LIMIT && writeId(prefix, number) === id ? number : undefined;
}

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
    title: buildTitle(draw, location, session_type, isLatin ? LATIN_JOBS : JOBS),
    type: "device",
  };
}

/** The title of a device: a numbered job, an agent or a thing, the latter two with their owner. */
function buildTitle(
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

/** A client program as the service sees it. */
interface ClientProfile {
  /** Its `client_name`. */
  title: string;
  ja4: string;
  /** Its User-Agent strings, older first. */
  agents: readonly string[];
}

const MAC = "Macintosh; Intel Mac OS X 10_15_7";
const WINDOWS = "Windows NT 10.0; Win64; x64";
const mozilla = (system: string, rest: string) => `Mozilla/5.0 (${system}) ${rest}`;
const chrome = (system: string, version: number) =>
  mozilla(system, `AppleWebKit/537.36 (KHTML, like Gecko) Chrome/${version}.0.0.0 Safari/537.36`);
const firefox = (version: number) =>
  mozilla(`X11; Linux x86_64; rv:${version}.0`, `Gecko/20100101 Firefox/${version}.0`);
const safari = (system: string, rest: string) =>
  mozilla(system, `AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 ${rest}`);
const IPHONE = safari("iPhone; CPU iPhone OS 18_5 like Mac OS X", "Mobile/15E148 Safari/604.1");

export const CLIENTS: Readonly<Record<SessionType, readonly ClientProfile[]>> = {
  browser: [
    { title: "Web console", ja4: "t13d1516h2_8daaf6152771_02713d6af862", agents: [chrome(MAC, 137), chrome(MAC, 138)] },
    { title: "Admin portal", ja4: "t13d1516h2_8daaf6152771_d8a2da3f94cd", agents: [chrome(WINDOWS, 138)] },
    { title: "Web console", ja4: "t13d1717h2_5b57614c22b0_3d5424432f57", agents: [firefox(139), firefox(140)] },
    { title: "Web console", ja4: "t13d2014h2_a09f3c656075_14788d8d241b", agents: [safari(MAC, "Safari/605.1.15")] },
    { title: "Mobile login", ja4: "t13d2014h2_a09f3c656075_e42f34c56612", agents: [IPHONE] },
  ],
  api: [
    { title: "Shell script", ja4: "t13d3112h2_e8f1e7e78f70_b26ce05bbdd6", agents: ["curl/8.5.0", "curl/8.14.1"] },
    { title: "Billing sync", ja4: "t13d1811h1_85036bcba153_375ca2c5e164", agents: ["python-requests/2.32.4"] },
    { title: "Deploy service", ja4: "t13d521000_b262b3658495_8e6e362c5eac", agents: ["node"] },
    { title: "Webhook relay", ja4: "t13d1311h2_f57a46bbacb6_e7c285222651", agents: ["Go-http-client/2.0"] },
  ],
  mcp: [
    { title: "Claude Code", ja4: "t13d5911h1_a33745022dd6_1f22a2ca17c4", agents: ["claude-code/1.0.64"] },
    { title: "Cursor", ja4: "t13d1714h1_5b57614c22b0_eca864cca44a", agents: ["Cursor/1.3.0 (darwin arm64)"] },
    { title: "MCP Inspector", ja4: "t13d521100_b262b3658495_f5a9a0b5c4b2", agents: ["mcp-inspector/0.16.1"] },
    { title: "エージェント", ja4: "t13d1311h1_f57a46bbacb6_ab7e3b40a677", agents: ["mcp-go/0.34.0"] },
  ],
};

/** A city as an IP database describes it, with names for the devices there. */
interface SampleLocation {
  city: string;
  country: string;
  /** The subdivision part of ISO 3166-2. */
  region: string;
  latLong: [number, number];
  timezone: string;
  /** Networks that serve the country. */
  asns: readonly number[];
  owners: readonly string[];
  things: readonly string[];
}

type CityRow = readonly [string, string, string, SampleLocation["latLong"], string, readonly number[], string, string];

const ROWS: readonly CityRow[] = [
  ["San Francisco", "US", "CA", [37.7749, -122.4194], "America/Los_Angeles", [7922, 701], "Ada O'Brien", "MacBook Pro"],
  ["New York", "US", "NY", [40.7128, -74.006], "America/New_York", [7922, 7018], "Grace Zoë", "desktop, 2nd floor"],
  ["Bogotá", "CO", "DC", [4.711, -74.0721], "America/Bogota", [10620], "Lucía Íñigo", "Portátil"],
  ["São Paulo", "BR", "SP", [-23.5505, -46.6333], "America/Sao_Paulo", [27699, 28573], "João Conceição", "Celular"],
  ["Paris", "FR", "IDF", [48.8566, 2.3522], "Europe/Paris", [3215, 12322], "Amélie François", "Poste à l’accueil"],
  ["Berlin", "DE", "BE", [52.52, 13.405], "Europe/Berlin", [3320, 24940], "Jürgen Käthe", "Büro-PC"],
  ["Warszawa", "PL", "14", [52.2297, 21.0122], "Europe/Warsaw", [5617], "Łukasz Żaneta", "Telefon"],
  ["İstanbul", "TR", "34", [41.0082, 28.9784], "Europe/Istanbul", [9121, 34984], "Işıl Çağrı", "Ofis bilgisayarı"],
  ["Москва", "RU", "MOW", [55.7558, 37.6173], "Europe/Moscow", [12389, 8402], "Алексей Юлия", "Рабочий ноутбук"],
  ["القاهرة", "EG", "C", [30.0444, 31.2357], "Africa/Cairo", [8452, 24863], "ليلى أحمد", "حاسوب المكتب"],
  ["Nairobi", "KE", "30", [-1.2921, 36.8219], "Africa/Nairobi", [33771], "Wanjikũ Otieno", "Pixel"],
  ["मुंबई", "IN", "MH", [19.076, 72.8777], "Asia/Kolkata", [9829, 24560], "आरव सुनीता", "दफ़्तर का कंप्यूटर"],
  ["上海", "CN", "SH", [31.2304, 121.4737], "Asia/Shanghai", [4134, 4837], "王伟 李娜", "笔记本电脑"],
  ["서울", "KR", "11", [37.5665, 126.978], "Asia/Seoul", [4766, 9318], "민준 서연", "노트북"],
  ["東京", "JP", "13", [35.6762, 139.6503], "Asia/Tokyo", [2516, 17676], "田中 さくら", "会社のMac 🏠"],
  ["Sydney", "AU", "NSW", [-33.8688, 151.2093], "Australia/Sydney", [1221, 7545], "Margaret Sam", "ThinkPad X1"],
];

/** Cities worldwide whose coordinates, country, region, timezone, networks and names belong together. */
export const LOCATIONS: readonly SampleLocation[] = ROWS.map(
  ([city, country, region, latLong, timezone, asns, owners, thing]) => {
    return { city, country, region, latLong, timezone, asns, owners: owners.split(" "), things: ["iPhone", thing] };
  },
);

/** Those whose names are in Latin script. */
const LATIN_LOCATIONS: readonly SampleLocation[] = LOCATIONS.filter(({ city, owners, things }) =>
  /^[\p{Script=Latin}\p{Script=Common}\p{M}]*$/u.test([city, ...owners, ...things].join("")),
);
