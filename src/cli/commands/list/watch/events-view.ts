/** A watched list as events, one per line. */

import type { Io } from "../../../io/io.js";
import type { ListItem } from "../../../listing/kinds.js";
import { jqFilter, printResults } from "../../../output/jq.js";
import { stringifyItems } from "../../../output/safe-json.js";
import { createTracker, type TrackedItem } from "./changes.js";
import type { View } from "./poll.js";

/** Options of {@link eventsView}. */
export interface EventOptions {
  /** The fields of `--columns`: events contain only these, and report only their changes. */
  paths: readonly string[] | undefined;
  /** Prints client secrets unmasked. */
  reveal: boolean;
  /** `--jq`: runs on each event. */
  jq: string | undefined;
  /** Milliseconds since the epoch. */
  now: () => number;
}

/**
 * Prints `{"type":"added","object":{…},"time":"…"}` for every item of the first poll, then the changes. The time is that
 * of the poll, RFC 3339 in UTC.
 */
export function eventsView(io: Io, { paths, reveal, jq, now }: EventOptions): View {
  const compare = createTracker();
  const filter = jq === undefined ? undefined : jqFilter(jq);
  const trackedOf = (items: readonly ListItem[]): TrackedItem[] =>
    items.map((item) => ({ id: item.id ?? "", json: stringifyItems([item], "", { reveal, paths }) }));
  return {
    io,
    async show(poll) {
      const [items, others] = [trackedOf(poll.items), trackedOf(poll.others)];
      const time = new Date(now()).toISOString();
      const lines = compare({ ...poll, items, others }).map(
        ({ type, json }) => `{"type":"${type}","object":${json},"time":"${time}"}`,
      );
      if (lines.length === 0) return;
      const text = `${lines.join("\n")}\n`;
      if (filter) await printResults(await filter(text), io);
      else await io.stdout.write(text);
    },
  };
}
