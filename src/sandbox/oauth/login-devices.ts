import { Lru } from "../../http/lru.js";
import type { SandboxData } from "../data/data.js";
import { CLIENTS } from "../data/sample-device.js";
import type { SandboxInteraction } from "../data/wire-types.js";
import type { MovableClock } from "../http/clock.js";
import type { OidcClient } from "./oidc.js";

// Users of a sandbox connect from loopback, for which there is no location.
const LOCATION = {
  asn: 3320,
  city: "Berlin",
  country_code: "DE",
  lat_long: [52.52, 13.405] as [number, number],
  region_code: "BE",
  remote_ip: "192.0.2.10",
  timezone: "Europe/Berlin",
};
const FINGERPRINT = CLIENTS.mcp[0]?.ja4 ?? "";
const MAX_KNOWN = 10_000;

/** The devices that logins at the authorization server of a pool create: one for each client and account. */
export class LoginDevices {
  readonly #data: SandboxData;
  readonly #clock: MovableClock;
  readonly #poolId: string;
  readonly #devices = new Lru<string>(MAX_KNOWN);

  constructor(data: SandboxData, clock: MovableClock, poolId: string) {
    this.#data = data;
    this.#clock = clock;
    this.#poolId = poolId;
  }

  /** Records a login: inserts a device, or updates `last_seen` of the one that there is. */
  recordLogin(client: OidcClient, accountId: string, userAgent: string): void {
    if (this.isActive(client.clientId, accountId) && this.recordUse(client.clientId, accountId, userAgent)) return;
    const title = client.clientName ?? client.clientId;
    const details = this.#interaction(userAgent);
    const device = this.#data.insertDevice(this.#poolId, {
      dynamic_client_details: {
        auth_profile: "mcp",
        client_secret: "<CLIENT_SECRET>",
        pkce_required: true,
        redirect_uris: client.redirectUris,
        title,
      },
      first_seen: details,
      last_seen: details,
      session_type: "mcp",
      status: "active",
      title,
    });
    this.#devices.set(keyOf(client.clientId, accountId), device.id);
  }

  /** Updates `last_seen` of a device; returns whether there is one. */
  recordUse(clientId: string, accountId: string, userAgent: string): boolean {
    const id = this.#devices.get(keyOf(clientId, accountId));
    if (id === undefined) return false;
    return this.#data.updateDevice(this.#poolId, id, { last_seen: this.#interaction(userAgent) }) !== undefined;
  }

  /** Whether a device is neither revoked nor deleted; one that was dropped from memory counts as active. */
  isActive(clientId: string, accountId: string): boolean {
    const id = this.#devices.get(keyOf(clientId, accountId));
    return id === undefined || this.#data.findDevice(this.#poolId, id)?.status === "active";
  }

  #interaction(userAgent: string): SandboxInteraction {
    const at = Math.floor(this.#clock.now() / 10) / 100;
    return { ...LOCATION, at, ja4_fingerprint: FINGERPRINT, user_agent: userAgent };
  }
}

function keyOf(clientId: string, accountId: string): string {
  return `${clientId} ${accountId}`;
}
