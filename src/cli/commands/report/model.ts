/** What `devices report` prints: the same object for the text, the HTML page and JSON, which has these names. */

/** How often each value of a field came. */
export interface Tally {
  /** Different values that were counted. */
  distinct: number;
  /** Devices that have no such field, or something else in it. */
  unknown: number;
  /** Devices whose value came when the counter was full: they are in no count. */
  uncounted: number;
  /** The values that came most often, the most frequent first. */
  top: { value: string; count: number }[];
  /** Devices that have one of the other values. */
  others: number;
}

/** When devices were seen, by days in UTC. */
export interface TimeSeries {
  /** The first day, such as 2026-01-31; null where no device says when. */
  earliest: string | null;
  latest: string | null;
  /** Devices that do not say when, or name a time that cannot be. */
  unknown: number;
  /** The days on which devices were seen, in order; days without one are left out. */
  days: { date: string; count: number }[];
}

/** A place to a degree, and how many devices were seen there. */
export interface PlaceCount {
  latitude: number;
  longitude: number;
  first_seen: number;
  last_seen: number;
}

/** Devices that were last seen elsewhere than at first; latitude and longitude to a degree. */
export interface RouteCount {
  from: [number, number];
  to: [number, number];
  count: number;
}

/** One kind of thing worth a look. */
export interface Finding {
  code: string;
  title: string;
  /** A sentence that says why it is worth a look. */
  why: string;
  /** Devices that it was found on. */
  count: number;
  /** How many of them are active. */
  active: number;
  /** Devices that have the fields that it takes to judge. */
  judged: number;
  not_judged: number;
  examples: { id: string; detail: string }[];
}

/** A pool's devices in numbers. */
export interface Report {
  type: "device_report";
  pool_id: string;
  /** RFC 3339 in UTC. */
  generated_at: string;
  /** Whether every device that was asked for is in the numbers. */
  complete: boolean;
  /** What a reader has to know of how the numbers came about. */
  notes: string[];
  devices: {
    /** Devices in the numbers. */
    counted: number;
    /** Devices that were read: those that the filters left out included. */
    read: number;
    /** Devices that the service says the pool has; null where it does not say. */
    total: number | null;
    /** Counted devices that were last seen within the last 7 days. */
    seen_within_7_days: number;
    /** Counted devices that were last seen within the last 30 days. */
    seen_within_30_days: number;
  };
  status: Tally;
  session_type: Tally;
  auth_profile: Tally;
  /** ISO 3166-1 alpha-2 codes. */
  countries: { first_seen: Tally; last_seen: Tally };
  /** Autonomous system numbers, of when each device was last seen. */
  networks: Tally;
  /** Titles of the registered clients. */
  clients: Tally;
  /** JA4 fingerprints, of when each device was last seen. */
  fingerprints: Tally;
  first_seen: TimeSeries;
  last_seen: TimeSeries;
  places: PlaceCount[];
  routes: RouteCount[];
  findings: Finding[];
}
