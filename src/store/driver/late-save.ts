import { isStoreFailure } from "../../oauth/grant/grant-store.js";
import { momentOf, type StoreClock, since } from "./store-clock.js";

/** For how long a process tries to save what an engine did not take. */
const GIVEN_UP_MS = 10 * 60_000;

/**
 * Tries to save again and again, one try at a time, until nothing is left to be saved or it gives up.
 *
 * @returns whether nothing is left
 */
export function savedInTime(clock: StoreClock, everyMs: number, save: () => Promise<unknown>): Promise<boolean> {
  const begun = momentOf(clock);
  return new Promise((resolve) => {
    let isTrying = false;
    const attempt = async () => {
      if (isTrying) return;
      isTrying = true;
      const isSaved = await save().then(
        () => true,
        // Any other failure is an outcome, such as a logout.
        (error) => !isStoreFailure(error),
      );
      isTrying = false;
      if (!isSaved && since(begun, clock) < GIVEN_UP_MS) return;
      stop();
      resolve(isSaved);
    };
    const stop = clock.every(everyMs, () => void attempt());
  });
}
