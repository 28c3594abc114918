/** The shells that there is a script for. */
export const SHELLS = ["bash", "zsh", "fish", "powershell"] as const;

/** What `completion` was told. */
export interface CompletionOptions {
  shell: (typeof SHELLS)[number];
}
