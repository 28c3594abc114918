import { Lru } from "../http/lru.js";
import { quote } from "../redact.js";
import type { AgentContext } from "./agent-context.js";
import { IdpLogin, idpKeyOf } from "./agent-idp-login.js";
import { isLoginNotRequired } from "./discovery/challenge-request.js";
import { discoverIssuer } from "./discovery/discovery.js";
import { type GrantOptions, loginRequired } from "./grant/grant-requirements.js";
import { fingerprintOf } from "./machine/grant-strategies.js";
import { MachineTokenManager } from "./machine/machine-token-manager.js";
import type { Grant, GrantKey } from "./model/grant.js";
import { type MachineGrantOf, machineAccountOf } from "./model/machine-grant.js";
import { type Discovered, type IssuerMetadata, takesIdJag } from "./model/metadata.js";

/** The users, each at one server, whose managers are kept. */
const MAX_USERS = 1000;

/** A client at the issuer of a server. */
type ServerClient = Pick<ConstructorParameters<typeof MachineTokenManager>[0], "client" | "isDocument">;

/**
 * The tokens of servers that come from the login at the company's identity provider (enterprise-managed authorization):
 * machine grants with its id token.
 */
export class IdpTokens {
  readonly #agent: AgentContext;
  /** The login itself. */
  readonly login: IdpLogin;
  /**
   * The manager of each user and server, with the login that its tokens come from: a later call reads that login alone.
   */
  readonly #servers = new Lru<{ login: Grant; manager: MachineTokenManager }>(MAX_USERS);

  constructor(agent: AgentContext) {
    this.#agent = agent;
    this.login = new IdpLogin(agent);
  }

  /**
   * The manager of the tokens of a server that come from the login; undefined if its issuer takes no assertions, or if no
   * login is stored and none is configured.
   *
   * @throws `AgentAuthError` `login_required` for a provider that the options name, and as discovery
   */
  async managerFor(key: GrantKey, { challenge, signal }: GrantOptions): Promise<MachineTokenManager | undefined> {
    const { idp, client: preRegistered, store } = this.#agent.options;
    const name = JSON.stringify([key.profile, key.server]);
    const latest = this.#servers.get(name);
    if (latest && (await store.read(latest.login))?.signedInAt === latest.login.signedInAt) return latest.manager;
    const login = await this.login.stored(key.profile);
    if (login === undefined && typeof idp !== "object") return undefined;
    const known = login && (await this.#derived(login, key));
    const found = known ? undefined : await this.#announcing(key, challenge, signal);
    if (known === undefined && found === undefined) return undefined;
    const client = preRegistered === undefined ? this.#clientOf(key, known, found) : { client: preRegistered };
    if (client === undefined) return undefined;
    if (login === undefined) {
      const issuer = typeof idp === "object" ? idp.issuer : "";
      throw loginRequired(idpKeyOf(key.profile, issuer), "not logged in at the identity provider");
    }
    const manager = this.#managerOf(login, client);
    this.#servers.set(name, { login, manager });
    return manager;
  }

  /** The stored grant of a server that came from the login. */
  async find(key: GrantKey): Promise<Grant | undefined> {
    const login = await this.login.stored(key.profile);
    return login && this.#derived(login, key);
  }

  /** The login, then the grants of servers that came from it; none if no login is stored. */
  async withDerived(profile: string): Promise<Grant[]> {
    const login = await this.login.stored(profile);
    if (login === undefined) return [];
    const { store } = this.#agent.options;
    const suffix = await this.#suffixOf(login);
    const all = await store.list({ profile });
    return [login, ...all.filter(({ account }) => suffix !== undefined && account?.endsWith(suffix))];
  }

  /** How the accounts of tokens end that came from a login; undefined if it has no id token. */
  async #suffixOf({ endpoints, client, tokens }: Grant): Promise<string | undefined> {
    const { idToken } = tokens;
    if (idToken === undefined) return undefined;
    const fingerprint = await fingerprintOf([endpoints.token, client.clientId], idToken.reveal());
    // As the accounts of machine grants have it.
    return machineAccountOf("id_jag", "", fingerprint).slice(machineAccountOf("id_jag", "").length);
  }

  async #derived(login: Grant, { profile, server }: GrantKey): Promise<Grant | undefined> {
    const { store, client } = this.#agent.options;
    const suffix = await this.#suffixOf(login);
    const all = suffix === undefined ? [] : await store.list({ profile, server });
    const clientId = client?.clientId;
    return all.find(
      (grant) =>
        grant.account?.endsWith(suffix ?? "") && (clientId === undefined || grant.client.clientId === clientId),
    );
  }

  /** What discovery finds, if the issuer of the server takes assertions. */
  async #announcing(
    key: GrantKey,
    challenge: GrantOptions["challenge"],
    signal: AbortSignal | undefined,
  ): Promise<Discovered<IssuerMetadata> | undefined> {
    try {
      const found = await discoverIssuer(this.#agent.loginContext(key, undefined), key.server, challenge, signal);
      return takesIdJag(found.issuer) ? found : undefined;
    } catch (error) {
      if (!isLoginNotRequired(error)) throw error;
      return undefined;
    }
  }

  /** The client for an issuer: that of the stored tokens, else the metadata document. */
  #clientOf(
    key: GrantKey,
    known: Grant | undefined,
    found: Discovered<IssuerMetadata> | undefined,
  ): ServerClient | undefined {
    if (known !== undefined) {
      const { clientId, source } = known.client;
      return { client: { clientId, issuer: known.issuer }, isDocument: source === "metadata-document" };
    }
    const { clientMetadataUrl, onProgress } = this.#agent.options;
    if (found?.issuer.takesClientIdDocuments && clientMetadataUrl !== undefined && clientMetadataUrl !== "none")
      return { client: { clientId: clientMetadataUrl }, isDocument: true };
    const what = `${quote(found?.issuer.issuer)} takes assertions of the identity provider for ${quote(key.server)}`;
    onProgress?.({ about: "login", text: `${what}, but no client that it knows is named: set client.clientId` });
    return undefined;
  }

  #managerOf(login: Grant, { client, isDocument = false }: ServerClient): MachineTokenManager {
    return new MachineTokenManager({
      ...this.#agent.managerContext(),
      grant: this.#grantOf(login),
      client,
      isDocument,
      loginContext: (key, before) => ({
        ...this.#agent.loginContext(key, before),
        // As for every machine grant: an assertion is sent only to an issuer that the server names too.
        chosenIssuer: undefined,
        sendsCredential: true,
      }),
    });
  }

  #grantOf(login: Grant): MachineGrantOf<"id_jag"> {
    const { issuer, endpoints, client } = login;
    const { clientId, clientSecret, authMethod } = client;
    const latest = async () => {
      const stored = await this.#agent.options.store.read(login);
      if (stored === undefined) throw loginRequired(login, "not logged in at the identity provider");
      return stored;
    };
    return {
      type: "id_jag",
      idp: { issuer, tokenEndpoint: endpoints.token, clientId, clientSecret, authMethod },
      idToken: async () => (await latest()).tokens.idToken?.reveal() ?? "",
      subject: async () => this.login.subjectOf(await latest()),
    };
  }
}
