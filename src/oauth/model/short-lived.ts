/** Texts that every process behind a store can read for a few minutes, such as logins that wait for their callback. */
export interface ShortLivedRecords {
  /**
   * Stores a text, and removes the texts that have expired.
   *
   * @param id unique letters and digits, at most 80
   * @param life Unix milliseconds, by the clock of the caller
   * @returns false if a text is stored under this id; nothing is changed then
   */
  put(id: string, text: string, life: { now: number; expiresAt: number }): Promise<boolean>;
  /**
   * Removes a text and returns it: of several processes that take it, one gets it. The caller checks whether it has
   * expired.
   */
  take(id: string): Promise<string | undefined>;
}

/** Records for the processes that need no other process to see them. */
export function memoryRecords(): ShortLivedRecords {
  const records = new Map<string, { text: string; expiresAt: number }>();
  return {
    put: async (id, text, { now, expiresAt }) => {
      for (const [old, record] of records) if (record.expiresAt <= now) records.delete(old);
      if (records.has(id)) return false;
      records.set(id, { text, expiresAt });
      return true;
    },
    take: async (id) => {
      const text = records.get(id)?.text;
      records.delete(id);
      return text;
    },
  };
}
