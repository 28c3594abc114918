/** A watched list as events, one a line. */

import type { Device } from "../../../../api/types.js";
import type { Io } from "../../../io/io.js";
import { jqFilter, printResults } from "../../../output/jq.js";
import { stringifyItems } from "../../../output/safe-json.js";
import { createTracker, type Told } from "./changes.js";
import type { View } from "./view.js";

/** How events are written. */
export interface EventOptions {
  /** The fields that `--columns` names: only they are told, and only their changes. */
  paths: readonly string[] | undefined;
  /** Prints client secrets as they are. */
  reveal: boolean;
  /** `--jq`: sees each event. */
  jq: string | undefined;
  /** Milliseconds since the epoch. */
  now: () => number;
}

/**
 * Prints `{"type":"added","object":{…},"time":"…"}` for every item of the first reading, then what changes. The time is
 * that of the reading, RFC 3339 in UTC.
 */
export function eventsView(io: Io, { paths, reveal, jq, now }: EventOptions): View {
  const compare = createTracker();
  const filter = jq === undefined ? undefined : jqFilter(jq);
  let hasWarned = false;
  const toldOf = (items: readonly Device[]): Told[] =>
    items.flatMap((item) => {
      const { id } = item;
      return typeof id === "string" ? [{ id, json: stringifyItems([item], "", { reveal, paths }) }] : [];
    });
  return {
    io,
    async show(round) {
      const [items, others] = [toldOf(round.items), toldOf(round.others)];
      const nameless = round.items.length + round.others.length - items.length - others.length;
      if (nameless > 0 && !hasWarned) io.warn(`${nameless} items have no id: what becomes of them is not told`);
      hasWarned ||= nameless > 0;
      // One of them may be an item that is known.
      const isWhole = round.isWhole && nameless === 0;
      const time = new Date(now()).toISOString();
      const lines = compare({ ...round, items, others, isWhole }).map(
        ({ type, json }) => `{"type":"${type}","object":${json},"time":"${time}"}`,
      );
      if (lines.length === 0) return;
      const text = `${lines.join("\n")}\n`;
      if (filter) await printResults(await filter(text), io);
      else await io.stdout.write(text);
    },
    async tell() {},
  };
}
