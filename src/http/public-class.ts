import { usageError } from "../errors.js";
import { quote } from "../redact.js";
import { suggest } from "./suggest.js";

/** Whether each option of a type exists; the compiler finds one that is missing. */
export type OptionNames<Options> = Readonly<Record<keyof Options, true>>;

/**
 * Rejects an option that does not exist: a misspelt one would be ignored.
 *
 * @param known an object with a value that is true, or counts as it, for the name of each option
 * @param of what has the options
 * @throws `TypeError` that names the nearest option, and for what is no object
 */
export function checkOptionNames(given: object, known: object, of: string): void {
  // A program in JavaScript may pass anything.
  if (typeof given !== "object" || given === null) throw new TypeError(`${of} requires an object of options`);
  const isKnown = (name: string) => Object.hasOwn(known, name) && Boolean(Reflect.get(known, name));
  const unknown = Object.entries(given).find(([name, value]) => value !== undefined && !isKnown(name));
  if (unknown === undefined) return;
  const suggestion = suggest(unknown[0], Object.keys(known));
  const correction = suggestion === undefined ? "" : `; did you mean ${suggestion}?`;
  throw new TypeError(`${of} has no option ${quote(unknown[0])}${correction}`);
}

/**
 * Rejects a call without a required argument or option, which a program in JavaScript may leave out.
 *
 * @param given the arguments, or the object of options
 * @param types the `typeof` of each required one
 * @param of what requires them
 * @throws `AgentAuthError` `usage` that names the first one that is missing
 */
export function requireOptions(
  given: object | null | undefined,
  types: Readonly<Record<string, "string" | "function" | "object">>,
  of: string,
): void {
  for (const [name, type] of Object.entries(types)) {
    const value: unknown = Reflect.get(given ?? {}, name);
    if (typeof value !== type || value === null) throw usageError(`${of} requires ${name}, of type ${type}`);
  }
}

/**
 * Binds every method of a class to an instance, so that it can be passed on alone: `{ fetch: agent.fetch }` type-checks
 * whether it is bound or not. A method that a subclass overrides is bound as overridden.
 *
 * @param prototype of the class that declares the methods
 */
export function bindMethods(instance: object, prototype: object): void {
  for (const name of listMethods(prototype)) bindMethod(instance, name, Reflect.get(instance, name) as Method);
}

/**
 * Binds every method of a class to an instance when it is first read, for instances that are made by the thousand: the
 * result is the prototype of such instances.
 *
 * @param prototype of the class that declares the methods
 */
export function bindingPrototype(prototype: object): object {
  const binding = Object.create(prototype) as object;
  for (const name of listMethods(prototype)) {
    const method = Reflect.get(prototype, name) as Method;
    Object.defineProperty(binding, name, {
      get(this: object) {
        return bindMethod(this, name, method);
      },
      set(this: object, value: Method) {
        Object.defineProperty(this, name, { value, writable: true, configurable: true, enumerable: true });
      },
      configurable: true,
    });
  }
  return binding;
}

type Method = (...parameters: unknown[]) => unknown;

/** The names of the methods of a class and of those that it extends. */
function listMethods(prototype: object): string[] {
  const names: string[] = [];
  for (let own = prototype; own !== Object.prototype; own = Object.getPrototypeOf(own) as object) {
    const all = Object.entries(Object.getOwnPropertyDescriptors(own));
    names.push(
      ...all.flatMap(([name, { value }]) => (name === "constructor" || typeof value !== "function" ? [] : name)),
    );
  }
  return names;
}

function bindMethod(instance: object, name: string, method: Method): Method {
  const value = method.bind(instance) as Method;
  // Not enumerable: printing the instance shows what it did before.
  Object.defineProperty(instance, name, { value, writable: true, configurable: true });
  return value;
}
