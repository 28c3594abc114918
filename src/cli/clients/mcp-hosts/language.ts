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

/** How settings in one language are read and changed. A change leaves the rest of the text as it is. */
export interface SettingsLanguage {
  /**
   * The whole settings as plain data.
   *
   * @throws {@link SettingsSyntaxError}
   */
  parse(text: string, key: string): Readonly<Record<string, unknown>>;
  /** Settings as text that ends in a line break. */
  print(settings: object): string;
  /** The text with a new server. */
  add(text: string, key: string, name: string, entry: object): string;
  /** The text with these values in the entry of a server; its other values stay, and one that is undefined is removed. */
  update(text: string, key: string, name: string, entry: object): string;
  /** The text without a server. */
  remove(text: string, key: string, name: string): string;
}

/** The line of a position, counted from 1. */
export function lineAt(text: string, offset: number): number {
  return text.slice(0, offset).split("\n").length;
}

/** Where the line of a position starts. */
export function lineStart(text: string, offset: number): number {
  return text.lastIndexOf("\n", offset - 1) + 1;
}

/** Where the line after a position starts. */
export function lineEnd(text: string, offset: number): number {
  return text.indexOf("\n", offset) + 1 || text.length;
}

/** The line break of a text: its first one, else that of Unix. */
export function lineBreakOf(text: string): "\r\n" | "\n" {
  return /^[^\n]*\r\n/.test(text) ? "\r\n" : "\n";
}

/** The text with other lines in the place of a part; the line before them is ended, and they get the text's line breaks. */
export function spliceLines(text: string, from: number, to: number, lines: string): string {
  const eol = lineBreakOf(text);
  const before = text.slice(0, from);
  const separator = before === "" || before.endsWith("\n") ? "" : eol;
  return before + separator + lines.replaceAll("\n", eol) + text.slice(to);
}

/** Whether a value is an object with keys. */
export function isMap(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Date);
}
