import type { GrantKey } from "../model/grant.js";
import type { GrantStore, Reservation } from "../model/grant-store.js";

/**
 * Reserves disk space for one save during work that cannot be repeated, such as a refresh or a login of the user.
 *
 * @throws `AgentAuthError` class `store`, before the work begins, if nothing could be stored
 */
export async function withReservation<T>(
  store: GrantStore,
  key: GrantKey,
  work: (reservation: Reservation) => Promise<T>,
): Promise<T> {
  const reservation = await store.reserve(key);
  try {
    return await work(reservation);
  } finally {
    await reservation.release();
  }
}
