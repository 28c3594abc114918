import { shellWord } from "../../redact.js";

/** An option of the SDK as the command line spells it. */
export function flagText(option: string, value?: string): string {
  return flagWords(option, value).map(shellWord).join(" ");
}

/** The same as words. */
export function flagWords(option: string, value?: string): string[] {
  const flag = `--${option.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
  return value === undefined ? [flag] : [flag, value];
}
