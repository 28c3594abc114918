/** The clients that programs build from what the CLI uses: its settings, its store and its environment. */

import { MANAGEMENT_OPTIONS, ManagementClient, type ManagementClientOptions } from "../api/client.js";
import { type AgentAuthError, usageError } from "../errors.js";
import { checkOptionNames, type OptionNames } from "../http/public-class.js";
import { AgentClient, type AgentClientOptions } from "../oauth/agent.js";
import { AGENT_OPTIONS } from "../oauth/agent-options.js";
import type { PreRegisteredClient } from "../oauth/client/client-auth.js";
import type { GrantStore } from "../oauth/model/grant-store.js";
import type { Workload } from "../oauth/model/machine-grant.js";
import { type Env, readEnv } from "../platform.js";
import { Redactor } from "../redact.js";
import { bothReceivers } from "../telemetry/emit.js";
import { type AssertionSourceOptions, openSource, storedGrants } from "./assertion-sources.js";
import { openAudit } from "./audit.js";
import { makingProfile } from "./change-config.js";
import type { NetworkOptions } from "./connection-settings.js";
import { certificateFiles, withSource } from "./connection-settings.js";
import { agentNetwork, networkFetch } from "./network.js";
import { openStore } from "./open-store.js";
import { checkSetting, toAuthorizationParams } from "./profile-settings.js";
import { readSettings, type SettingRules } from "./resolve-settings.js";
import { secretOrReferenced } from "./secrets.js";
import { requireBaseUrl, sandboxNotice, serviceOptions } from "./service-settings.js";
import type { Settings } from "./settings.js";
import { findHome, homeFolder } from "./settings.js";
import { readStoreChoice } from "./store-choice.js";

/**
 * How the clients of a profile reach the network, beside the environment. A client that is given a `fetch` sends every request
 * with it: `fetch` and `network` contradict these.
 */
export interface ProfileNetworkOptions {
  /** A file with certificates of authorities to trust beside the usual ones and `NODE_EXTRA_CA_CERTS`, PEM. */
  caFile?: string | undefined;
  /** Whether the authorities that the system trusts are trusted too; needs Node 22.15 or later. Default: the profile's. */
  useSystemCa?: boolean | undefined;
  /**
   * The address (http:// or https://) of the proxy for every host that `NO_PROXY` does not name. Default: that of
   * `HTTPS_PROXY`, `HTTP_PROXY` or `ALL_PROXY`.
   */
  proxy?: string | undefined;
}

/** Options of {@link createAgentClient}: each that is set replaces what the profile and the environment name. */
export type ProfileAgentOptions = Partial<AgentClientOptions> & ProfileNetworkOptions;

/** Options of {@link createManagementClient}: each that is set replaces what the profile and the environment name. */
export interface ProfileManagementOptions extends Partial<ManagementClientOptions>, ProfileNetworkOptions {
  /** The profile to use. Default: that of `AGENTAUTH_PROFILE`, else that of the settings file. */
  profile?: string | undefined;
}

const PROFILE_OPTIONS: OptionNames<Pick<ProfileManagementOptions, "profile"> & ProfileNetworkOptions> = {
  profile: true,
  caFile: true,
  useSystemCa: true,
  proxy: true,
};

/** What one call reads: later changes of the environment do not count. */
interface Surroundings {
  env: Env;
  home: string | undefined;
  settings: Settings;
}

/**
 * An agent client with the store, profile, issuer, proxies and client certificate of the CLI, so that one login
 * (`agentauth login <mcp_url>`) serves every process of this user. It asks no user to log in: `login` adds that.
 *
 * Reads the settings file and the environment when it is called. The first login makes a profile that does not exist
 * yet.
 *
 * @throws `AgentAuthError` `usage` for a setting that is wrong; `TypeError` for an unknown option
 *
 * @example const agent = createAgentClient(); const { value } = await agent.token("https://mcp.example/mcp");
 */
export function createAgentClient(options: ProfileAgentOptions = {}): AgentClient {
  checkOptionNames(options, { ...AGENT_OPTIONS, ...PROFILE_OPTIONS }, "createAgentClient");
  const { caFile, useSystemCa, proxy, ...given } = withoutUndefined(options);
  const surroundings = readSurroundings({ profile: given.profile }, { acceptsNewProfile: true });
  const { settings, env } = surroundings;
  const network = buildNetwork(surroundings, { caFile, useSystemCa, proxy }, given);
  const { profile, clientCert, clientMetadataUrl } = settings;
  const names = [given.client?.issuer, given.grant?.issuer, given.issuer];
  const issuer = names.every((one) => one === undefined) ? settings.issuer : undefined;
  if (issuer) checkSetting("issuer", issuer.value, issuer.source);
  const audit = settings.audit && openAudit(settings.audit, emitWarning);
  return new AgentClient({
    store: given.store ?? chooseStore(surroundings),
    mutualTls: clientCert !== undefined,
    ...(issuer && { issuer: issuer.value }),
    authorizationParams: toAuthorizationParams(settings),
    ...(clientMetadataUrl && { clientMetadataUrl: clientMetadataUrl.value }),
    ...(network && { network: agentNetwork(network, new Redactor()) }),
    ...(given.grant === undefined && {
      idp: "stored" as const,
      storedGrants: storedGrants({
        env,
        fetch: () => networkFetch(network ?? bareNetwork(env), new Redactor()),
        onSecret: () => {},
      }),
    }),
    ...given,
    profile: profile.value,
    ...(given.client && { client: withSecret(given.client, env) }),
    onEvent: bothReceivers(given.onEvent, audit),
  });
}

/**
 * A management client with the service, token, proxies and client certificate of the CLI's profile. Where nothing names
 * a service and a sandbox runs, it is that of the sandbox, which a process warning says.
 *
 * Reads the settings file and the environment when it is called; a token in a file is read again for each request.
 *
 * @throws `AgentAuthError` `usage` for a setting that is wrong, a profile that does not exist, or no base URL;
 * `TypeError` for an unknown option
 *
 * @example const service = createManagementClient(); for await (const device of service.devices.list({ pool_id }))
 * console.log(device.title);
 */
export function createManagementClient(options: ProfileManagementOptions = {}): ManagementClient {
  checkOptionNames(options, { ...MANAGEMENT_OPTIONS, ...PROFILE_OPTIONS }, "createManagementClient");
  const { profile, caFile, useSystemCa, proxy, ...given } = withoutUndefined(options);
  const surroundings = readSurroundings({ profile, baseUrl: given.baseUrl });
  const network = buildNetwork(surroundings, { caFile, useSystemCa, proxy }, given);
  const { settings } = surroundings;
  const notice = given.baseUrl === undefined ? sandboxNotice(settings) : undefined;
  if (notice !== undefined) emitWarning(notice);
  return new ManagementClient({
    baseUrl: requireBaseUrl(settings),
    ...serviceOptions(settings),
    ...(network && { fetch: networkFetch(network, new Redactor()) }),
    ...given,
  });
}

/**
 * The store where the CLI stores the logins of a profile, for an {@link AgentClient} that is built by hand. The first login
 * makes a profile that does not exist yet.
 *
 * @throws `AgentAuthError` `usage` for a setting that is wrong
 */
export function defaultStore(options: { profile?: string | undefined } = {}): GrantStore {
  return chooseStore(readSurroundings(options, { acceptsNewProfile: true }));
}

/**
 * The workload of a grant `jwt_bearer`, whose assertions come from a source: `file:PATH`, `env:NAME`, `exec:COMMAND`,
 * `url:ADDRESS`, `github-actions`, `kubernetes[:PATH]`, `gcp`, `azure` or `spiffe[:PATH]`, as `--assertion` has them.
 *
 * Reads the environment when it is called, and the source once for each token request.
 *
 * @throws `AgentAuthError` `usage` for a source that is none
 *
 * @example const grant = { type: "jwt_bearer", issuer: "https://as.example", ...workloadFrom("github-actions") }; const
 * agent = createAgentClient({ grant });
 */
export function workloadFrom(source: string, options: AssertionSourceOptions = {}): Workload {
  const env = readEnvironment();
  const fetch = networkFetch(bareNetwork(env), new Redactor());
  return openSource(source, options, { env, fetch, from: "the source of the assertion" });
}

function withoutUndefined<Options extends object>(options: Options): Options {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as Options;
}

function readSurroundings(
  { profile, baseUrl }: { profile?: string | undefined; baseUrl?: string | undefined },
  rules?: SettingRules,
): Surroundings {
  const env = readEnvironment();
  const home = findHome(env)?.value;
  const flags = { ...(profile !== undefined && { profile }), ...(baseUrl !== undefined && { baseUrl }) };
  return { env, home, settings: readSettings(flags, env, (name) => `the option ${name}`, rules) };
}

function readEnvironment(): Env {
  return readEnv(process.env);
}

function bareNetwork(env: Env): NetworkOptions {
  return { env, proxy: undefined, caFile: undefined };
}

function emitWarning(text: string): void {
  process.emitWarning(text, "AgentAuthWarning");
}

function chooseStore({ env, home, settings }: Surroundings): GrantStore {
  const { profile, isNewProfile } = settings;
  const requireHome = () => homeFolder(env);
  const store = openStore(readStoreChoice(profile.value, env, home), requireHome, { env, warn: emitWarning });
  return isNewProfile ? makingProfile(store, profile.value, requireHome()) : store;
}

/** The network of the profile; undefined where the caller's own replaces it. */
function buildNetwork(
  { env, settings }: Surroundings,
  { caFile, useSystemCa, proxy }: ProfileNetworkOptions,
  own: Pick<AgentClientOptions, "fetch" | "network">,
): NetworkOptions | undefined {
  const system = useSystemCa === undefined ? undefined : useSystemCa ? "yes" : "no";
  const systemCa = withSource(system, "the option useSystemCa");
  const named = { proxy: withSource(proxy, "the option proxy"), caFile: withSource(caFile, "the option caFile") };
  const replacement = (["network", "fetch"] as const).find((name) => own[name] !== undefined);
  if (replacement === undefined)
    return { env, ...named, systemCa: systemCa ?? settings.useSystemCa, clientCertificate: certificateFiles(settings) };
  const lost = named.caFile ?? named.proxy ?? (useSystemCa ? systemCa : undefined);
  if (lost) throw contradictionError(lost.source, replacement);
  return undefined;
}

function contradictionError(source: string, replacement: string): AgentAuthError {
  const message = `${source} and the option ${replacement} exclude each other: ${replacement} makes its own connections`;
  return usageError(message, "leave out one of them");
}

/** The client with the secret of the environment, where it has no other proof. */
function withSecret(client: PreRegisteredClient, env: Env): PreRegisteredClient {
  const variable = "AGENTAUTH_CLIENT_SECRET";
  const secret = env[variable];
  const isProven = client.clientSecret !== undefined || client.privateKey !== undefined;
  if (isProven || secret === undefined) return client;
  return { ...client, clientSecret: secretOrReferenced(secret, variable, env) };
}
