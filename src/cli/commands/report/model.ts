/** The output of `devices report`: the same object for the text, the HTML page and the JSON, which uses these names. */

/** How often each value of a field came. */
export interface Tally {
  /** Distinct values that were counted. */
  distinct: number;
  /** Devices without a valid value. */
  unknown: number;
  /** Devices whose value came after the counter was full: no count includes them. */
  uncounted: number;
  /** The most frequent values, in order. */
  top: { value: string; count: number }[];
  /** Devices that have one of the other values. */
  others: number;
}

/** When devices were seen, by days in UTC. */
export interface TimeSeries {
  /** The first day, such as 2026-01-31; null if no device has a time. */
  earliest: string | null;
  latest: string | null;
  /** Devices without a valid time. */
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

/** Devices last seen at another place than first; latitude and longitude to a degree. */
export interface RouteCount {
  from: [number, number];
  to: [number, number];
  count: number;
}

/** The devices that one rule found. */
export interface Finding {
  code: string;
  title: string;
  /** Why it matters. */
  why: string;
  /** Devices with this finding. */
  count: number;
  /** How many of them are active. */
  active: number;
  /** Devices with the data to check. */
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
  /** Whether the numbers include every requested device. */
  complete: boolean;
  /** How the numbers were collected. */
  notes: string[];
  devices: {
    /** Devices in the numbers. */
    counted: number;
    /** Devices that were read, including those that do not match the filter. */
    read: number;
    /** Devices in the pool, as the service reports; null if it does not. */
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
