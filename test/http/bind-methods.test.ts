import { inspect } from "node:util";
import { expect, it } from "vitest";
import { bindMethods } from "../../src/http/bind-methods.js";

class Base {
  readonly #name: string;

  constructor(name: string) {
    bindMethods(this, Base.prototype);
    this.#name = name;
  }

  get shown(): string {
    return this.#name;
  }

  name(): string {
    return this.#name;
  }
}

class Loud extends Base {
  override name(): string {
    return `${super.name()}!`;
  }
}

it("a method works alone, also one that a subclass overrides", () => {
  const { name } = new Base("a");
  const { name: loud } = new Loud("b");
  expect([name(), loud()]).toEqual(["a", "b!"]);
});

it("printing shows no methods, and a test can put another in the place of one", () => {
  const base = new Base("a");
  expect([inspect(base), Object.keys(base)]).toEqual(["Base {}", []]);
  base.name = () => "other";
  expect(base.name()).toBe("other");
});
