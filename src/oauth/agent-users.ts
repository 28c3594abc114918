import { Lru } from "../http/lru.js";
import { AgentContext } from "./agent-context.js";
import type { AgentClientOptions } from "./agent-options.js";
import { AgentTokens } from "./agent-tokens.js";

/** One of the many users of an agent client. */
export interface AgentUser {
  /** The tenant of the store, which must have tenants. Default: that of the store itself. */
  tenant?: string | undefined;
  /**
   * The user that this program has authenticated. It is the profile that the user's logins are stored under, and is sent to no
   * issuer and no server.
   */
  user: string;
}

const MAX_TENANTS = 1000;

/** What the users of an agent client share: all of them what knows nothing of a login, those of a tenant its logins too. */
export class AgentUsers {
  readonly #own: AgentTokens;
  readonly #tenants = new Lru<AgentTokens>(MAX_TENANTS);

  constructor(options: AgentClientOptions) {
    this.#own = new AgentTokens(new AgentContext(options));
  }

  /** The client's own logins: those of its profile. */
  own(): AgentUserView {
    return new AgentUserView(this, this.#own, this.#own.context);
  }

  /** @throws `TypeError` for a user, or a client, that cannot be distinguished from others */
  view({ tenant, user }: AgentUser): AgentUserView {
    const { grant, loginHint } = this.#own.context.options;
    if (grant !== undefined) throw new TypeError("a machine grant has no users: leave out the option grant");
    if (loginHint !== undefined) throw new TypeError("loginHint names the account of one user: leave it out");
    if (typeof user !== "string" || user === "") throw new TypeError("user must be a text of at least one character");
    const tokens = this.tokensOf(tenant);
    return new AgentUserView(this, tokens, new AgentContext(tokens.context.options, user, this.#own.context));
  }

  /**
   * What the users of a tenant share; undefined: of the store itself.
   *
   * @throws `TypeError` if the store has no tenants
   */
  tokensOf(tenant: string | undefined): AgentTokens {
    if (tenant === undefined) return this.#own;
    const known = this.#tenants.get(tenant);
    if (known !== undefined) return known;
    const { options, profile } = this.#own.context;
    if (options.store.for === undefined)
      throw new TypeError("this store has no tenants: leave out tenant, or use grantStore");
    const store = options.store.for({ tenant });
    const tokens = new AgentTokens(new AgentContext({ ...options, store }, profile, this.#own.context));
    this.#tenants.set(tenant, tokens);
    return tokens;
  }
}

/** What an agent client of one user is made of. */
export class AgentUserView {
  readonly users: AgentUsers;
  readonly tokens: AgentTokens;
  readonly context: AgentContext;

  constructor(users: AgentUsers, tokens: AgentTokens, context: AgentContext) {
    this.users = users;
    this.tokens = tokens;
    this.context = context;
  }

  /** Whether the client is that of one user, not the one that all users come from. */
  get isOfUser(): boolean {
    return this.context !== this.tokens.context;
  }
}
