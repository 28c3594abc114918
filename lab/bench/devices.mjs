// The devices that every side reads: all fields of the documented shape, about a kilobyte of JSON each.

/** How many devices differ in more than their id. */
export const DISTINCT = 1000;

const ID_DIGITS = 12;
const ID_PREFIX = "dev_";

const CITIES = [
  ["Lisbon", "PT", "11", [38.7223, -9.1393], "Europe/Lisbon"],
  ["São Paulo", "BR", "SP", [-23.5505, -46.6333], "America/Sao_Paulo"],
  ["Osaka", "JP", "27", [34.6937, 135.5023], "Asia/Tokyo"],
  ["Zürich", "CH", "ZH", [47.3769, 8.5417], "Europe/Zurich"],
  ["Portland", "US", "OR", [45.5152, -122.6784], "America/Los_Angeles"],
  ["Nairobi", "KE", "30", [-1.2921, 36.8219], "Africa/Nairobi"],
  ["Melbourne", "AU", "VIC", [-37.8136, 144.9631], "Australia/Melbourne"],
];
const AGENTS = [
  ["mcp", "Claude Desktop", "claude-desktop/1.2.9 (darwin; arm64) mcp-client/1.4"],
  ["mcp", "Inspector", "mcp-inspector/2.12.0 node/20.20.2 (linux; x64)"],
  ["api", "Ann's nightly export", "python-httpx/0.28.1 (export job; batch 17)"],
  ["api", "billing sync", "Go-http-client/2.0 billing-sync/3.8.1"],
  [
    "browser",
    "Console",
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36",
  ],
];

/** The id of the device at an index. All ids have the same length, so they sort as text in the order of the list. */
export function idOf(index) {
  return ID_PREFIX + String(index).padStart(ID_DIGITS, "0");
}

/** The index of an id. */
export function indexOf(id) {
  return Number(id.slice(ID_PREFIX.length));
}

function seen(index, at) {
  const [city, country_code, region_code, lat_long, timezone] = CITIES[index % CITIES.length];
  return {
    asn: 1 + ((index * 7919) % 64_000),
    at,
    city,
    country_code,
    ja4_fingerprint: `t13d1516h2_8daaf6152771_${((index * 2654435761) % 0xffffff).toString(16).padStart(12, "0")}`,
    lat_long,
    region_code,
    remote_ip: index % 3 === 0 ? `2001:db8::${(index % 254).toString(16)}:1` : `198.51.100.${1 + (index % 254)}`,
    timezone,
    user_agent: AGENTS[index % AGENTS.length][2],
  };
}

/** The device at an index; devices that are a multiple of {@link DISTINCT} apart differ only in the id. */
export function deviceOf(index) {
  const kind = index % DISTINCT;
  const [session_type, title] = AGENTS[kind % AGENTS.length];
  const first = 1_760_000_000 + kind * 61;
  return {
    account_id: "acc_7f3k2m9qpx",
    domain_id: "dom_4t8wz1c6ry",
    pool_id: "pool_2n5v8b1hjd",
    id: idOf(index),
    dynamic_client_details: {
      auth_profile: session_type === "mcp" ? "mcp" : "openid",
      client_secret: "<CLIENT_SECRET>",
      pkce_required: session_type !== "api",
      redirect_uris: [`http://127.0.0.1:${20_000 + kind}/callback`, "https://console.example/oauth/callback"],
      title: `${title} ${kind}`,
    },
    first_seen: seen(kind, first),
    last_seen: seen(kind + (kind % 12 === 0 ? 1 : 0), first + 4_321.25),
    session_type,
    status: kind % 10 === 0 ? "revoked" : "active",
    title: `${title} on ${CITIES[kind % CITIES.length][0]} ${kind}`,
    type: "device",
  };
}

const blocks = new Map();

/**
 * The JSON of `size` devices from an index on, without brackets. The text is prepared once; each call copies it and writes
 * the ids.
 *
 * @returns {Buffer} a new buffer
 */
export function devicesJson(start, size) {
  const key = `${start % DISTINCT}/${size}`;
  let block = blocks.get(key);
  if (block === undefined) {
    block = prepare(start % DISTINCT, size);
    blocks.set(key, block);
  }
  const bytes = Buffer.from(block.bytes);
  for (let at = 0; at < size; at++) bytes.latin1Write(idOf(start + at), block.ids[at]);
  return bytes;
}

function prepare(start, size) {
  const ids = [];
  const parts = [];
  let length = 0;
  for (let at = 0; at < size; at++) {
    const part = Buffer.from((at === 0 ? "" : ",") + JSON.stringify(deviceOf(start + at)));
    ids.push(length + part.indexOf(ID_PREFIX));
    parts.push(part);
    length += part.length;
  }
  return { ids, bytes: Buffer.concat(parts) };
}
