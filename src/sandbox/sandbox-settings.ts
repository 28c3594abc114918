import { randomBytes } from "node:crypto";
import { AgentAuthError, usageError } from "../errors.js";
import { parseUrl } from "../http/address.js";
import { checkOptionNames, type OptionNames } from "../http/public-class.js";
import { quote } from "../redact.js";
import type { DataSize } from "./data/data.js";
import { MAX_POOLS } from "./data/seeded.js";
import type { Fault } from "./faults/faults.js";
import { isLoopback } from "./http/requests.js";
import type { CreateMcpServer } from "./mcp/own-server.js";
import {
  invalidOption,
  OAUTH_OPTIONS,
  type OAuthOptions,
  type OAuthSettings,
  readOAuthSettings,
  readWholeNumber,
} from "./oauth/issuer-settings.js";
import type { ServerShape } from "./vendors/shape.js";

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
  /** Default 2. */
  accounts?: number;
  /** Per account. Default 3. */
  domains?: number;
  /** Per domain. Default 4. */
  pools?: number;
  /** Per pool, at most 1,000,000; up to 100,000 the first page in each order takes less than a second. Default 120. */
  devices?: number;
  /** Milliseconds before every management response. Default 0. */
  latencyMs?: number;
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
  /**
   * The shape of a real MCP server and its authorization server, by its name in the catalogue, or one of your own.
   * Logins are approved at once. Default: the sandbox's own MCP servers.
   */
  like?: string | ServerShape;
  /** Closes the sandbox when it fires. */
  signal?: AbortSignal;
}

/** {@link SandboxOptions}, validated and with defaults. */
export interface SandboxSettings
  extends Required<
    Omit<SandboxOptions, keyof OAuthOptions | keyof DataSize | "allowNonLoopback" | "like" | "mcpServer" | "signal">
  > {
  mcpServer: CreateMcpServer | undefined;
  size: DataSize;
  like: string | ServerShape | undefined;
  oauth: OAuthSettings;
}

const OPTIONS: OptionNames<SandboxOptions> = {
  ...OAUTH_OPTIONS,
  seed: true,
  host: true,
  allowNonLoopback: true,
  port: true,
  accounts: true,
  domains: true,
  pools: true,
  devices: true,
  latencyMs: true,
  pageSize: true,
  maxPageSize: true,
  apiToken: true,
  controlToken: true,
  allowOrigins: true,
  faults: true,
  now: true,
  mcpServer: true,
  like: true,
  signal: true,
};

/** The most devices of a pool, and of a page. */
const MAX_DEVICES = 1_000_000;

/** The most accounts, domains of an account and pools of a domain. */
const MAX_PER_PARENT = 100_000;

/** Validates the options and applies the defaults. @throws AgentAuthError `usage`, `TypeError` for an unknown option */
export function readSandboxSettings(options: SandboxOptions): SandboxSettings {
  checkOptionNames(options, OPTIONS, "startSandbox");
  const size: DataSize = {
    accounts: readWholeNumber("accounts", options.accounts, 2, 1, MAX_PER_PARENT),
    domains: readWholeNumber("domains", options.domains, 3, 1, MAX_PER_PARENT),
    pools: readWholeNumber("pools", options.pools, 4, 1, MAX_PER_PARENT),
    devices: readWholeNumber("devices", options.devices, 120, 0, MAX_DEVICES),
  };
  const pools = size.accounts * size.domains * size.pools;
  if (pools > MAX_POOLS) throw invalidOption("pools", pools, `at most ${MAX_POOLS} in all accounts together`);
  const maxPageSize = readWholeNumber("maxPageSize", options.maxPageSize, 1000, 1, MAX_DEVICES);
  return {
    seed: readWholeNumber("seed", options.seed, 1, 0, 2 ** 32 - 1),
    host: readHost(options),
    allowOrigins: readOrigins(options.allowOrigins),
    port: readWholeNumber("port", options.port, 0, 0, 65_535),
    size,
    latencyMs: readWholeNumber("latencyMs", options.latencyMs, 0, 0, 3_600_000),
    pageSize: Math.min(readWholeNumber("pageSize", options.pageSize, 50, 1, MAX_DEVICES), maxPageSize),
    maxPageSize,
    apiToken: readToken("apiToken", options.apiToken, "sandbox_"),
    controlToken: readToken("controlToken", options.controlToken, "sandbox_control_"),
    faults: options.faults ?? [],
    like: options.like,
    now: options.now ?? Date.now,
    mcpServer: options.mcpServer,
    oauth: readOAuthSettings(options),
  };
}

function readHost({ host = "127.0.0.1", allowNonLoopback = false }: SandboxOptions): string {
  if (isLoopback(host) || allowNonLoopback) return host;
  throw new AgentAuthError("usage", `the sandbox does not listen on ${quote(host)}: other machines could reach it`, {
    class: "usage",
    hint: "use 127.0.0.1, or set allowNonLoopback",
    remedy: { action: "allow", option: "allowNonLoopback" },
  });
}

function readOrigins(origins: readonly string[] = []): readonly string[] {
  const bad = origins.find((origin) => !/^https?:/.test(origin) || parseUrl(origin)?.origin !== origin);
  if (bad === undefined) return [...origins];
  throw invalidOption("allowOrigins", bad, "exact origins such as http://localhost:5173");
}

function readToken(name: string, value: string | undefined, prefix: string): string {
  if (value === undefined) return prefix + randomBytes(24).toString("base64url");
  if (/^[\w\-.~+/]+=*$/.test(value)) return value;
  const message = `sandbox: ${name} has a character that a bearer token cannot have (RFC 6750 section 2.1)`;
  throw usageError(message, "use letters, digits and - . _ ~ + /");
}
