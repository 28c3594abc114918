/** Progress beyond single requests, as text for the user. */
export interface Progress {
  /** The operation. */
  about: "refresh" | "login";
  /** The text for the user. */
  text: string;
}
