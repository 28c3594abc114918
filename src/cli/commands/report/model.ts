/** The output of `devices report`: the same object for the text, the HTML page and the JSON, which uses these names. */

/** How often each value of a field came. */
export interface Tally {
  /** Distinct values; after 10,000 of them, further ones are not distinguished. */
  distinct: number;
  /** Devices without a valid value. */
  unknown: number;
  /** The most frequent values, in order. */
  top: {
    /** A value. */
    value: string;
    /** The number of devices that have it. */
    count: number;
  }[];
  /** Devices that have one of the other values. */
  others: number;
}

/** The devices that one rule found. */
export interface Finding {
  /** The name of the rule. */
  code: string;
  /** What was found, in a few words. */
  title: string;
  /** Why it matters. */
  why: string;
  /** What can be done about it. */
  action: string;
  /** Devices with this finding. */
  count: number;
  /** Devices with the data to check. */
  judged: number;
  /** Devices without that data. */
  not_judged: number;
  /** Some of the devices. */
  examples: {
    /** The device. */
    id: string;
    /** Its title; null if the service sent none. */
    title: string | null;
    /** What was found on it. */
    detail: string;
  }[];
}

/** A pool's devices in numbers. */
export interface Report {
  type: "device_report";
  /** The pool. */
  pool_id: string;
  /** RFC 3339 in UTC. */
  generated_at: string;
  /** Whether the numbers include every requested device. */
  complete: boolean;
  /** How the numbers were collected. */
  notes: string[];
  /** How many devices there are. */
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
  /** The status of each device. */
  status: Tally;
  /** The kind of session of each device. */
  session_type: Tally;
  /** The profile of each device's client. */
  auth_profile: Tally;
  /** ISO 3166-1 alpha-2 codes, of when each device was last seen. */
  countries: Tally;
  /** Autonomous system numbers, of when each device was last seen. */
  networks: Tally;
  /** Titles of the registered clients. */
  clients: Tally;
  /** JA4 fingerprints, of when each device was last seen. */
  fingerprints: Tally;
  /** What the rules found. */
  findings: Finding[];
}
