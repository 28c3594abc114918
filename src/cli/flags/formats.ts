/** The output formats. */

/** The values of `--output`. */
export const FORMATS = ["table", "wide", "plain", "json", "ndjson", "csv", "yaml", "id"] as const;

/** One value of `--output`. */
export type Format = (typeof FORMATS)[number];
