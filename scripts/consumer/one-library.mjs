// Every class and function of the package is one object, whatever entry point it comes by, imported or required.
import { strict as assert } from "node:assert";
import { createRequire } from "node:module";

const require = createRequire(import.meta.url);
const { exports } = require("agentauth/package.json");
const entries = Object.entries(exports).filter(([, entry]) => entry.types !== undefined);
const found = new Map();
for (const [path] of entries) {
  const name = `agentauth${path.slice(1)}`;
  for (const [how, values] of Object.entries({ import: await import(name), require: require(name) })) {
    for (const [key, value] of Object.entries(values)) {
      const first = found.get(key) ?? { value, by: `${how} of ${name}` };
      assert.equal(value, first.value, `${key}: ${how} of ${name} is not ${first.by}`);
      found.set(key, first);
    }
  }
}
assert.ok(found.size > 40, `${found.size} exported values`);

const [{ AgentAuthError, AgentClient }, { createAgentClient }, { startSandbox }] = await Promise.all([
  import("agentauth"),
  import("agentauth/node"),
  import("agentauth/sandbox"),
]);
assert.ok(createAgentClient() instanceof AgentClient);
assert.throws(() => createAgentClient({ profile: "no such profile" }), AgentAuthError);
await assert.rejects(startSandbox({ port: -1 }), AgentAuthError);
console.log(`${found.size} exported values of ${entries.length} entry points: one of each`);
