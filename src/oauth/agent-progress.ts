/** What goes on beyond single requests, in words for people. */
export interface Progress {
  /** What is going on. */
  about: "renewal" | "sign-in";
  /** What it is, in words for the user. */
  text: string;
}
