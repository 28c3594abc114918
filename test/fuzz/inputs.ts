import { inspect } from "node:util";
import { isAgentAuthError } from "../../src/errors.js";
import { fc } from "../helpers/properties.js";
import { unsafeCharacters } from "../helpers/unsafe.js";

/** Inputs to try in each property: `npm run fuzz -- --runs <n>` sets another number than the few of an ordinary run. */
export const RUNS = Number(process.env["FUZZ_RUNS"] ?? 300);
/** How fast-check runs a property here. */
export const SETTINGS: fc.Parameters<unknown> = { numRuns: RUNS };

/** What parsers trip over: marks, escapes, names with a meaning, controls, long runs. */
const TROUBLE = fc.constantFrom(
  '"',
  "'",
  "\\",
  "\\u0000",
  "\\ud800",
  "{",
  "}",
  "[",
  "]",
  ",",
  ":",
  ";",
  "=",
  "&",
  "?",
  "#",
  "/",
  "//",
  "@",
  "%",
  "%00",
  "..",
  "\0",
  "\r\n",
  "\n",
  "\t",
  " ",
  "\u001b[31m",
  "\u009b",
  "\u202e",
  "\u200b",
  "\u2028",
  "\ufeff",
  "\u{e0041}",
  "\ud800",
  "__proto__",
  '"__proto__":{"polluted":1},',
  '"constructor":{"prototype":{"polluted":1}},',
  "toString",
  "null",
  "true",
  "-0",
  "1e400",
  "1e300",
  "-1",
  "9007199254740993",
  "NaN",
  "[".repeat(40),
  '{"a":'.repeat(40),
  "a".repeat(5000),
  ",".repeat(3000),
  "http://",
  "https://127.0.0.1/",
  "https://169.254.169.254/",
  "https://[::1]/",
  "javascript:",
  "user:pass@",
  "Bearer ",
);

const junk = fc.oneof(
  { weight: 3, arbitrary: TROUBLE },
  { weight: 1, arbitrary: fc.string({ unit: "binary", maxLength: 12 }) },
);

/** A text with a few random edits: pieces cut out, put in, put in twice or in another place. */
export function edited(texts: fc.Arbitrary<string>): fc.Arbitrary<string> {
  const edit = fc.record({ at: fc.nat(), cut: fc.nat(12), put: junk, again: fc.nat(3) });
  return fc.tuple(texts, fc.array(edit, { maxLength: 4 })).map(([text, edits]) =>
    edits.reduce((before, { at, cut, put, again }) => {
      const place = at % (before.length + 1);
      const gone = before.slice(place, place + cut);
      return before.slice(0, place) + [put, "", gone + gone, gone + put][again] + before.slice(place + cut);
    }, text),
  );
}

/** Any text: mostly the valid ones with edits, sometimes nothing but trouble. */
export function textLike(...valid: readonly string[]): fc.Arbitrary<string> {
  const trouble = fc.array(junk, { maxLength: 12 }).map((parts) => parts.join(""));
  return fc.oneof(
    { weight: 6, arbitrary: edited(fc.constantFrom(...valid)) },
    { weight: 1, arbitrary: trouble },
    { weight: 1, arbitrary: fc.string({ unit: "binary" }) },
  );
}

const ANY_VALUE = fc.oneof(
  fc.jsonValue({ maxDepth: 2 }),
  junk,
  fc.constantFrom(
    null,
    true,
    0,
    -1,
    1.5,
    1e300,
    "",
    [],
    {},
    [[]],
    [null],
    "http://evil.example",
    "https://evil.example/x#y",
  ),
);

/** JSON of a document with members changed, taken away or added, and then perhaps edited as a text. */
export function documentLike(valid: Readonly<Record<string, unknown>>): fc.Arbitrary<string> {
  const names = Object.keys(valid);
  const change = fc.record({
    name: fc.oneof({ weight: 4, arbitrary: fc.constantFrom(...names) }, { weight: 1, arbitrary: junk }),
    value: fc.option(ANY_VALUE, { nil: undefined }),
  });
  const changed = fc.array(change, { maxLength: 3 }).map((changes) => {
    const all = Object.entries(valid).concat(changes.map(({ name, value }) => [name, value]));
    return JSON.stringify(Object.fromEntries(all));
  });
  return fc.oneof(
    { weight: 4, arbitrary: changed },
    { weight: 2, arbitrary: edited(changed) },
    { weight: 1, arbitrary: textLike(JSON.stringify(valid)) },
  );
}

/** Stands in every secret position of what is fed in, and must come up in no error. */
export const CANARY = "canary-7f3a";

/** What came of an input: a value, or an error of a kind that is documented. */
export type Outcome<T> = { value: T } | { error: Error };

/**
 * Holds an error against what every error must be.
 *
 * @param kind which errors are documented. Default: `AgentAuthError`
 */
function checkError(thrown: unknown, kind: (error: unknown) => boolean = isAgentAuthError): Error {
  if (!(thrown instanceof Error) || !kind(thrown)) throw thrown;
  const shown = `${inspect(thrown, { depth: 8 })}${String(thrown)}${JSON.stringify(thrown)}`;
  if (shown.includes(CANARY)) throw new Error(`a secret is in the error: ${shown}`);
  // What is only ever quoted in an error of ours is escaped and cut there.
  const isOuter = isAgentAuthError(thrown) || thrown instanceof TypeError;
  if (isOuter && unsafeCharacters(thrown.message, "").length > 0)
    throw new Error(`not harmless: ${JSON.stringify(thrown.message)}`);
  if (isOuter && thrown.message.length > 4000) throw new Error(`too long to read: ${thrown.message.length} characters`);
  return thrown;
}

/** Runs a parser: it gives a value or a documented error, and changes nothing that it should not. */
export function tried<T>(work: () => T, kind?: (error: unknown) => boolean): Outcome<T> {
  try {
    return { value: work() };
  } catch (thrown) {
    return { error: checkError(thrown, kind) };
  } finally {
    checkPrototype();
  }
}

/** {@link tried} for what takes a while. */
export async function triedLater<T>(work: () => Promise<T>, kind?: (error: unknown) => boolean): Promise<Outcome<T>> {
  try {
    return { value: await work() };
  } catch (thrown) {
    return { error: checkError(thrown, kind) };
  } finally {
    checkPrototype();
  }
}

function checkPrototype(): void {
  if ("polluted" in {}) throw new Error("the prototype of all objects was changed");
}
