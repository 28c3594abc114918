/** A value and where it comes from, such as `--pool`, `AGENTAUTH_BASE_URL` or `profile default`. */
export interface Sourced {
  value: string;
  source: string;
}
