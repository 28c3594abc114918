import type { StoreDriver } from "../driver/driver.js";
import { decodeKey } from "./names.js";
import { redisError } from "./redis-error.js";
import type { Subscribe } from "./subscription.js";

/** `watch` of a driver: the changes that the scripts publish. */
export function watchBy(subscribe: Subscribe, channel: string, location: string): NonNullable<StoreDriver["watch"]> {
  return async (onChange, onGap, signal) => {
    if (signal.aborted) return;
    const onMessage = (message: string) => {
      const key = decodeKey(message);
      if (key) onChange(key);
    };
    try {
      await subscribe(channel, onMessage, onGap, signal);
    } catch (thrown) {
      throw redisError(thrown, location);
    }
  };
}
