/** The shells that have a completion script. */
export const SHELLS = ["bash", "zsh", "fish", "powershell"] as const;

/** Options of `completion`. */
export interface CompletionOptions {
  shell: (typeof SHELLS)[number];
}
