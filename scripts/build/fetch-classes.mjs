// On Node, touching the global Request, Response, Headers or FormData loads all of fetch: 20 ms and more, of a command that
// takes 100. The packages that build requests refer to ours in the bundle.
import { readFile } from "node:fs/promises";
import { join } from "node:path";

const PACKAGES = ["openapi-fetch", "oauth4webapi"];

/**
 * The esbuild plugin that gives the modules of these packages our own classes of fetch.
 *
 * Each answers `instanceof` by the name of the class, as objects of the global classes must pass too.
 *
 * @param root the folder of the project
 */
export function fetchClasses(root) {
  const ours = (name) => JSON.stringify(join(root, "src/http", name));
  const prelude = `
import { HttpHeaders as OwnHeaders } from ${ours("http-headers.ts")};
import { HttpRequest as OwnRequest } from ${ours("http-request.ts")};
import { HttpResponse as OwnResponse } from ${ours("http-response.ts")};
const isNamed = (value, name) => typeof value === "object" && value !== null && Object.prototype.toString.call(value) === \`[object \${name}]\`;
class Headers extends OwnHeaders { static [Symbol.hasInstance](value) { return isNamed(value, "Headers"); } }
class Request extends OwnRequest { static [Symbol.hasInstance](value) { return isNamed(value, "Request"); } }
class Response extends OwnResponse { static [Symbol.hasInstance](value) { return isNamed(value, "Response"); } }
class FormData { static [Symbol.hasInstance](value) { return isNamed(value, "FormData"); } }
`;
  const filter = new RegExp(`[\\\\/]node_modules[\\\\/](?:${PACKAGES.join("|")})[\\\\/].*\\.m?js$`);
  return {
    name: "fetch-classes",
    setup({ onLoad }) {
      onLoad({ filter }, async ({ path }) => ({
        contents: `${prelude}${await readFile(path, "utf8")}`,
        loader: "js",
      }));
    },
  };
}
