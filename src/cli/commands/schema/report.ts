/** The schema of what `devices report` prints. */

import { flag, integer, type JsonSchema, listOf, orNull, record, text, time } from "./json-schema.js";

function tally(description: string): JsonSchema {
  return record(
    {
      distinct: integer("different values that were counted"),
      unknown: integer("devices that have no such field, or something else in it"),
      uncounted: integer("devices whose value came when the counter was full"),
      top: listOf(record({ value: text("a value"), count: integer("how often it came") }), "the most frequent first"),
      others: integer("devices that have one of the other values"),
    },
    { description },
  );
}

function series(description: string): JsonSchema {
  return record(
    {
      earliest: orNull(text("the first day, in UTC; null where no device says when")),
      latest: orNull(text("the last day")),
      unknown: integer("devices that do not say when"),
      days: listOf(record({ date: text("a day"), count: integer("devices") }), "in order, days without one left out"),
    },
    { description },
  );
}

const PLACE: JsonSchema = {
  type: "array",
  items: { type: "number" },
  minItems: 2,
  maxItems: 2,
  description: "latitude and longitude, to a degree",
};

const FINDING = record({
  code: text("what was found"),
  title: text("in a few words"),
  why: text("why it is worth a look"),
  count: integer("devices that it was found on"),
  active: integer("how many of them are active"),
  judged: integer("devices that have the fields that it takes to judge"),
  not_judged: integer("devices that have not"),
  examples: listOf(record({ id: text("a device"), detail: text("what was found on it") }), "some of them"),
});

/** A pool's devices in numbers. */
export const REPORT_SCHEMA = record({
  type: { type: "string", const: "device_report" },
  pool_id: text("the pool"),
  generated_at: time("when"),
  complete: flag("whether every device that was asked for is in the numbers"),
  notes: listOf({ type: "string" }, "what a reader has to know of how the numbers came about"),
  devices: record({
    counted: integer("devices in the numbers"),
    read: integer("devices that were read, also those that a filter left out"),
    total: orNull(integer("devices that the service says the pool has; null where it does not say")),
    seen_within_7_days: integer("of those counted"),
    seen_within_30_days: integer("of those counted"),
  }),
  status: tally("by their status"),
  session_type: tally("by the kind of their session"),
  auth_profile: tally("by the profile of their client"),
  countries: record({ first_seen: tally("where first seen"), last_seen: tally("where last seen") }),
  networks: tally("by the autonomous system they were last seen in"),
  clients: tally("by the title of their client"),
  fingerprints: tally("by the JA4 fingerprint they were last seen with"),
  first_seen: series("when first seen"),
  last_seen: series("when last seen"),
  places: listOf(
    record({
      latitude: { type: "number" },
      longitude: { type: "number" },
      first_seen: integer("devices first seen here"),
      last_seen: integer("devices last seen here"),
    }),
    "to a degree",
  ),
  routes: listOf(record({ from: PLACE, to: PLACE, count: integer("devices") }), "between first and last seen"),
  findings: listOf(FINDING, "what is worth a look"),
});
