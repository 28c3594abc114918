import type { GrantKey, GrantStore, Reservation } from "./grant-store.js";

/**
 * Holds room for one save while something is under way that cannot be had twice, such as tokens that the issuer gives
 * once, or the user's time.
 *
 * @throws `AgentAuthError` class `store`, before the work is begun, where nothing could be kept
 */
export async function withReservation<T>(
  store: GrantStore,
  key: GrantKey,
  work: (room: Reservation) => Promise<T>,
): Promise<T> {
  const room = await store.reserve(key);
  try {
    return await work(room);
  } finally {
    await room.release();
  }
}
