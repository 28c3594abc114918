import { randomBytes } from "node:crypto";
import { AgentAuthError, usageError } from "../errors.js";
import { parseUrl } from "../http/address.js";
import { checkOptionNames } from "../http/public-class.js";
import type { JsonObject } from "../http/strict-json.js";
import { quote } from "../redact.js";
import type { DataSize } from "./data/data.js";
import { MAX_POOLS } from "./data/sample-device.js";
import type { Fault } from "./faults/faults.js";
import { isLoopback } from "./http/requests.js";
import type { CreateMcpServer } from "./mcp/own-server.js";
import {
  invalidOption,
  listReader,
  OAUTH_READERS,
  type OAuthOptions,
  type OptionReaders,
  readFlag,
  readWholeNumber,
  type SettingsOf,
} from "./oauth/issuer-settings.js";

/** The options of {@link startSandbox}. */
export interface SandboxOptions extends OAuthOptions {
  /** The same seed yields the same data and the same drawn faults. Default 1. */
  seed?: number;
  /** The address to listen on. Default 127.0.0.1. */
  host?: string;
  /** Allow an address that other machines can reach. */
  allowNonLoopback?: boolean;
  /**
   * The origins whose web pages may use the MCP servers, their metadata, and the metadata, registration, token and
   * revocation endpoints of the authorization servers, such as `http://localhost:5173` (CORS). Default: none.
   */
  allowOrigins?: readonly string[];
  /** The port; 0 takes a free one. Default 0. */
  port?: number;
  /**
   * The origin at which clients reach the sandbox through a proxy, such as `https://sandbox.example`: every address that the
   * sandbox publishes begins with it. Default: where it listens.
   */
  publicUrl?: string;
  /** Default 2. */
  accounts?: number;
  /** Per account. Default 3. */
  domains?: number;
  /** Per domain. Default 4. */
  pools?: number;
  /** Per pool, at most 1,000,000; up to 100,000 the first page in each order takes less than a second. Default 120. */
  devices?: number;
  /** Items per page where a request names no page size. Default 50. */
  pageSize?: number;
  /** The largest page size; larger requests are reduced to it. Default 1000. */
  maxPageSize?: number;
  /** The API token of the management API. Default: a random one that begins with `sandbox_`. */
  apiToken?: string;
  /** The token of the admin API below `/_sandbox`. Default: a random one. */
  controlToken?: string;
  /** Faults that are active from the start. */
  faults?: readonly Fault[];
  /**
   * The clock, in milliseconds. Default `Date.now`. All times of devices lie before the UTC day on which the sandbox
   * starts; with a fixed clock they are the same on every run.
   */
  now?: () => number;
  /**
   * Creates the MCP servers in place of the sample one, with the official SDK. Clients up to revision 2025-11-25 get
   * sessions, whose servers can send requests to the client and whose streams can be resumed.
   */
  mcpServer?: CreateMcpServer;
  /** Closes the sandbox when it fires. */
  signal?: AbortSignal;
}

/** The options of a sandbox as a file has them: `sandbox start --options <file>`. */
export type SandboxFileOptions = Omit<SandboxOptions, "now" | "mcpServer" | "signal">;

/** {@link SandboxOptions}, validated and with defaults. */
export type SandboxSettings = ReturnType<typeof readSandboxSettings>;

const MAX_DEVICES = 1_000_000;

/** The most accounts, domains of an account and pools of a domain. */
const MAX_PER_PARENT = 100_000;

const READERS = {
  seed: readWholeNumber(1, 0, 2 ** 32 - 1),
  host: readText("127.0.0.1"),
  allowNonLoopback: readFlag,
  allowOrigins: readOrigins,
  publicUrl: readPublicUrl,
  port: readWholeNumber(0, 0, 65_535),
  accounts: readWholeNumber(2, 1, MAX_PER_PARENT),
  domains: readWholeNumber(3, 1, MAX_PER_PARENT),
  pools: readWholeNumber(4, 1, MAX_PER_PARENT),
  devices: readWholeNumber(120, 0, MAX_DEVICES),
  pageSize: readWholeNumber(50, 1, MAX_DEVICES),
  maxPageSize: readWholeNumber(1000, 1, MAX_DEVICES),
  apiToken: readToken("sandbox_"),
  controlToken: readToken("sandbox_control_"),
  faults: readFaults,
  now: (value = Date.now) => value,
  mcpServer: (value?: CreateMcpServer) => value,
  signal: (value?: AbortSignal) => value,
  ...OAUTH_READERS,
} satisfies OptionReaders<SandboxOptions>;

/** Validates the options and applies the defaults. @throws AgentAuthError `usage`, `TypeError` for an unknown option */
export function readSandboxSettings(options: SandboxOptions) {
  checkOptionNames(options, READERS, "startSandbox");
  const all: [string, (value: never, name: string) => unknown][] = Object.entries(READERS);
  const read = all.map(([name, reader]) => [name, reader(Reflect.get(options, name) as never, name)]);
  const { accounts, domains, pools, devices, ...settings }: SettingsOf<typeof READERS> = Object.fromEntries(read);
  const { host, allowNonLoopback, pageSize, maxPageSize } = settings;
  const allPools = accounts * domains * pools;
  if (allPools > MAX_POOLS) throw invalidOption("pools", allPools, `at most ${MAX_POOLS} in all accounts together`);
  if (!isLoopback(host) && !allowNonLoopback)
    throw new AgentAuthError("usage", `the sandbox does not listen on ${quote(host)}: other machines could reach it`, {
      class: "usage",
      hint: "use 127.0.0.1, or set allowNonLoopback",
      remedy: { action: "allow", option: "allowNonLoopback" },
    });
  if (settings.dpop === "off" && settings.dpopNonces)
    throw invalidOption("dpop", "off", "supported or required where dpopNonces is set");
  const size: DataSize = { accounts, domains, pools, devices };
  return { ...settings, pageSize: Math.min(pageSize, maxPageSize), size };
}

/**
 * Checks the names of the members of an options file; their values are checked as those of {@link startSandbox}.
 *
 * @throws TypeError that names the nearest member
 */
export function checkFileOptions(given: JsonObject, from: string): SandboxFileOptions {
  const { now: _, mcpServer: __, signal: ___, ...known } = READERS;
  checkOptionNames(given, known, from);
  return given;
}

const isOrigin = (origin: string) => /^https?:/.test(origin) && parseUrl(origin)?.origin === origin;

function readOrigins(value: readonly string[] | undefined, name: string): readonly string[] {
  return listReader(isOrigin, "exact origins such as http://localhost:5173")(value, name) ?? [];
}

function readPublicUrl(value: string | undefined, name: string): string | undefined {
  const origin = value === undefined ? undefined : String(value).replace(/\/$/, "");
  if (origin === undefined || isOrigin(origin)) return origin;
  throw invalidOption(name, value, "an origin without a path, such as https://sandbox.example");
}

function readFaults(value: readonly Fault[] | undefined, name: string): readonly Fault[] {
  return (listReader(() => true, "a list of faults")(value, name) as readonly Fault[] | undefined) ?? [];
}

function readText(preset: string) {
  return (value: string | undefined, name: string): string => {
    if (value === undefined || typeof value === "string") return value ?? preset;
    throw invalidOption(name, value, "a text");
  };
}

function readToken(prefix: string) {
  return (value: string | undefined, name: string): string => {
    if (value === undefined) return prefix + randomBytes(24).toString("base64url");
    if (typeof value === "string" && /^[\w\-.~+/]+=*$/.test(value)) return value;
    const message = `sandbox: ${name} has a character that a bearer token cannot have (RFC 6750 section 2.1)`;
    throw usageError(message, "use letters, digits and - . _ ~ + /");
  };
}
