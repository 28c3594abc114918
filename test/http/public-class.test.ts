import { inspect } from "node:util";
import { describe, expect, it } from "vitest";
import { bindMethods } from "../../src/http/public-class.js";
import { AgentClient, ManagementClient } from "../../src/index.js";
import { createAgentClient, createManagementClient } from "../../src/node.js";
import { startSandbox } from "../../src/sandbox/index.js";
import { memoryStore } from "../../src/store/index.js";

const store = memoryStore();
const baseUrl = "https://agentauth.example";

describe("an option that does not exist", () => {
  it.each<[what: string, make: (options: object) => unknown, given: object, message: string]>([
    ["AgentClient", (given) => new AgentClient({ store, ...given }), { clientNmae: "x" }, "did you mean clientName?"],
    [
      "AgentClient",
      (given) => new AgentClient({ store, ...given }),
      { loginTimeout: 5 },
      "did you mean loginTimeoutMs?",
    ],
    [
      "ManagementClient",
      (given) => new ManagementClient({ baseUrl, ...given }),
      { timeout: 5 },
      "did you mean timeoutMs?",
    ],
    ["createAgentClient", (given) => createAgentClient(given), { caFle: "x" }, "did you mean caFile?"],
    ["createManagementClient", (given) => createManagementClient(given), { prfile: "x" }, "did you mean profile?"],
    ["startSandbox", (given) => startSandbox(given), { accessTokenTtl: 60 }, "did you mean accessTokenTtlSeconds?"],
    ["startSandbox", (given) => startSandbox(given), { devises: 5 }, "did you mean devices?"],
  ])("of %s is refused with the nearest one", async (what, make, given, meant) => {
    const [name] = Object.keys(given);
    const failing = Promise.resolve().then(() => make(given));
    await expect(failing).rejects.toThrow(new TypeError(`${what} has no option "${name}"; ${meant}`));
  });

  it("is refused by its name where no other is near, never by its value", () => {
    const failing = () => new ManagementClient({ baseUrl, ...{ zzzzzz: "planted-secret" } });
    expect(failing).toThrow(new TypeError('ManagementClient has no option "zzzzzz"'));
    expect(() => new ManagementClient({ baseUrl, ...{ constructor: 1 } })).toThrow('has no option "constructor"');
  });

  it("is none where its value is undefined", () => {
    expect(() => new ManagementClient({ baseUrl, ...{ zzzzzz: undefined } })).not.toThrow();
  });
});

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
  const { shout } = { shout: new Loud("b") };
  expect([shout.name(), Reflect.deleteProperty(shout, "name"), shout.name()]).toEqual(["b!", true, "b!"]);
});
