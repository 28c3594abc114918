/** The names of the output formats, which a profile can set one of; the command line says what each prints. */
export const FORMATS = ["table", "wide", "plain", "json", "ndjson", "csv", "yaml", "id"] as const;

/** The name of an output format. */
export type Format = (typeof FORMATS)[number];
