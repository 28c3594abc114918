/** The flag of an option as it is typed: `--page-size` for `pageSize`. */
export function flagOf(option: string): string {
  return `--${option.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}
