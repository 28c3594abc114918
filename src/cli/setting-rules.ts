/** What a setting's value must be, told as the end of a sentence that names it. */
export type SettingRule = (value: string) => void;

/** @throws `TypeError` with the rule, where it does not hold */
export function must(holds: boolean, rule: string): void {
  if (!holds) throw new TypeError(rule);
}

/** One of several words. */
export function oneOf(allowed: readonly string[]): SettingRule {
  return (value) => must(allowed.includes(value), `must be one of ${allowed.join(", ")}`);
}

/** Anything but nothing. */
export function nonEmpty(value: string): void {
  must(value.trim() !== "", "must not be empty");
}
