/** The text of a host's settings cannot be read, or has a form that is not changed. */
export class SettingsSyntaxError extends Error {
  /** The line of the file, counted from 1, where it is known. */
  readonly line: number | undefined;

  constructor(rule: string, line?: number) {
    super(rule);
    this.line = line;
  }
}

/** The servers in a host's settings by their names. */
export type Servers = Readonly<Record<string, unknown>>;

/** How settings in one language are read and changed. Every method leaves the rest of the text as it is. */
export interface SettingsLanguage {
  /**
   * The whole settings as plain data.
   *
   * @throws {@link SettingsSyntaxError}
   */
  parse(text: string, key: string): Readonly<Record<string, unknown>>;
  /** The text with a new server. */
  add(text: string, key: string, name: string, entry: object): string;
  /**
   * The text with these values in the entry of a server; its other values stay, and one that is undefined is removed.
   *
   * @throws {@link SettingsSyntaxError} for a form that is not changed
   */
  update(text: string, key: string, name: string, entry: object): string;
  /** The text without a server. */
  remove(text: string, key: string, name: string): string;
}

/** The line of a position, counted from 1. */
export function lineAt(text: string, offset: number): number {
  return text.slice(0, offset).split("\n").length;
}

/** The line break of a text: its first one, else that of Unix. */
export function lineBreakOf(text: string): "\r\n" | "\n" {
  const at = text.indexOf("\n");
  return at > 0 && text[at - 1] === "\r" ? "\r\n" : "\n";
}

/** The text with its last line ended. */
export function withLastBreak(text: string): string {
  return text === "" || text.endsWith("\n") ? text : text + lineBreakOf(text);
}

/** Whether a value is an object with keys. */
export function isMap(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Date);
}
