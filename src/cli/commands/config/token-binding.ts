import type { Profile } from "../../../profile/settings-file.js";

/** The entries of a profile, and the reference to an API token that was dropped. */
export interface Rebound {
  entries: Profile;
  /** The reference, and the base URL that its token was stored for. */
  dropped: { reference: string; boundTo: string } | undefined;
}

/**
 * Drops the reference to the API token if the profile's base URL moves to another origin or is removed: the token was
 * stored for the old origin, and must not be sent to another server because of an unrelated setting.
 */
export function rebind(before: Profile, after: Profile): Rebound {
  const { api_token: reference, ...rest } = after;
  const { base_url: boundTo } = before;
  if (reference === undefined || boundTo === undefined || isSameOrigin(boundTo, after.base_url)) {
    return { entries: after, dropped: undefined };
  }
  return { entries: rest, dropped: { reference, boundTo } };
}

function isSameOrigin(one: string, other: string | undefined): boolean {
  return other !== undefined && new URL(one).origin === new URL(other).origin;
}
