/** Progress beyond single requests, as text for the user. */
export interface Progress {
  /** The operation. */
  about: "renewal" | "sign-in";
  /** The text for the user. */
  text: string;
}
