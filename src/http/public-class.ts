import { quote } from "../redact.js";
import { suggest } from "./suggest.js";

/** The names of all options of a type; the compiler finds one that is missing. */
export type OptionNames<Options> = Readonly<Record<keyof Options, true>>;

/**
 * Rejects an option that does not exist: a misspelt one would be ignored.
 *
 * @param of what has the options
 * @throws `TypeError` that names the nearest option
 */
export function checkOptionNames<Options>(given: object, known: OptionNames<Options>, of: string): void {
  const unknown = Object.entries(given).find(([name, value]) => value !== undefined && !Object.hasOwn(known, name));
  if (unknown === undefined) return;
  const suggestion = suggest(unknown[0], Object.keys(known));
  const meant = suggestion === undefined ? "" : `; did you mean ${suggestion}?`;
  throw new TypeError(`${of} has no option ${quote(unknown[0])}${meant}`);
}

/**
 * Binds every method of a class to an instance, so that it can be passed on alone: `{ fetch: agent.fetch }` type-checks
 * whether it is bound or not. A method that a subclass overrides is bound as overridden.
 *
 * @param prototype of the class that declares the methods
 */
export function bindMethods(instance: object, prototype: object): void {
  for (const [name, { value }] of Object.entries(Object.getOwnPropertyDescriptors(prototype))) {
    if (name === "constructor" || typeof value !== "function") continue;
    const method = Reflect.get(instance, name) as typeof value;
    // Not enumerable: printing the instance shows what it did before.
    Object.defineProperty(instance, name, { value: method.bind(instance), writable: true, configurable: true });
  }
}
