/** What one of several processes does at the same time as the others. */
export interface DriverJob {
  /** `increment`: adds 1 to a number. The others: does it once for each key, and reports where it succeeded. */
  readonly name: "increment" | "create" | "delete" | "claim";
  /** The partition of its records. */
  readonly partition: string;
  /** The number of this process. */
  readonly process: number;
  /** How many processes do the same. */
  readonly processes: number;
  /** How often. */
  readonly times: number;
}
