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
