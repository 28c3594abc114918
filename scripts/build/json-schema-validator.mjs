// The server of the MCP SDK validates JSON Schemas with ajv on Node, and with a validator of a tenth of its size elsewhere.
// Both implement the same dialects: the sandbox has the smaller one.
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";

/** What the SDK's own module for browsers and workers has as its validator. */
const SMALL = "./validators/cfWorker.mjs";

/**
 * The esbuild plugin that replaces the validator.
 *
 * @returns `plugin`, and `check`, which throws when the SDK no longer loads a validator in this way
 */
export function jsonSchemaValidator() {
  let isReplaced = false;
  const plugin = {
    name: "json-schema-validator",
    setup({ onLoad }) {
      const filter = /[\\/]@modelcontextprotocol[\\/]server[\\/]dist[\\/]shimsNode\.mjs$/;
      onLoad({ filter }, ({ path }) => {
        if (!existsSync(join(dirname(path), SMALL))) return undefined;
        isReplaced = true;
        const lines = [
          `export { CfWorkerJsonSchemaValidator as DefaultJsonSchemaValidator } from ${JSON.stringify(SMALL)};`,
          'export { default as process } from "node:process";',
        ];
        return { contents: lines.join("\n"), loader: "js" };
      });
    },
  };
  const check = () => {
    if (isReplaced) return;
    throw new Error("the MCP SDK has another validator: change scripts/build/json-schema-validator.mjs");
  };
  return { plugin, check };
}
