import { isAgentAuthError } from "../errors.js";
import { isLoginNotRequired, requiredUnlessAbsent } from "./discovery/login-not-required.js";
import type { Grant } from "./model/grant.js";

/** How a grant is found. */
export interface GrantSearch {
  /** The stored grant, if there is one. */
  find(): Promise<Grant | undefined>;
  /** Gets the grant, or fails because a login is required. */
  get(): Promise<Grant>;
  /** Finds out whether a login is required. */
  requiresLogin(): Promise<boolean>;
}

/** The servers that were found to require no login. */
export class OpenServers {
  readonly #servers = new Set<string>();

  /** The grant for a request; undefined if the server requires no login. */
  async grant(server: string, { find, get, requiresLogin }: GrantSearch): Promise<Grant | undefined> {
    if (this.#servers.has(server)) {
      // Another process may have logged in since.
      if ((await find()) === undefined) return undefined;
      this.forget(server);
    }
    try {
      return await get();
    } catch (error) {
      // With a status it is the issuer's own `login_required` (OpenID Connect Core section 3.1.2.6).
      const isUnknown = isAgentAuthError(error) && error.code === "login_required" && error.status === undefined;
      const isOpen = isLoginNotRequired(error) || (isUnknown && !(await requiresLogin().catch(requiredUnlessAbsent)));
      if (!isOpen) throw error;
      this.#servers.add(server);
      return undefined;
    }
  }

  /** Forgets a server, such as one that has rejected a request without a token. */
  forget(server: string): void {
    this.#servers.delete(server);
  }
}
