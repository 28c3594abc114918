// @ts-nocheck
// The file store before grants had folders of their own, frozen: src/store/file/file.ts of commit 756622e, bundled with
// esbuild --bundle --platform=node --format=esm --target=node20.19.
// src/store/file/file.ts
import { createHash as createHash2 } from "node:crypto";
import { rmSync as rmSync4 } from "node:fs";
import { join as join6 } from "node:path";

// src/errors.ts
var BRAND = /* @__PURE__ */ Symbol.for("agentauth.error");
var AgentAuthError = class extends Error {
  /** Tells it from other errors in traces; to tell it in code use {@link isAgentAuthError}. */
  name = "AgentAuthError";
  /** The exact failure. */
  code;
  /** The kind of failure. */
  class;
  /** Whether the same call may succeed later. */
  retryable;
  /** @param code a known code, or one that a peer sent */
  constructor(code, message, options) {
    super(message, options.cause === void 0 ? void 0 : { cause: options.cause });
    this.code = code;
    this.class = options.class;
    this.retryable = options.retryable ?? options.class === "unavailable";
    for (const key of ["hint", "remedy", "status", "requestId", "url", "resume", "retryAfter"]) {
      const value = options[key];
      if (value !== void 0) Object.defineProperty(this, key, { value, enumerable: true });
    }
    if (options.response !== void 0) Object.defineProperty(this, "response", { value: options.response });
    Object.defineProperty(this, BRAND, { value: true });
  }
  /** The error as plain data, for logs and for programs. */
  toJSON() {
    return {
      code: this.code,
      class: this.class,
      message: this.message,
      ...this.hint !== void 0 && { hint: this.hint },
      ...this.remedy !== void 0 && { remedy: this.remedy },
      retryable: this.retryable,
      ...this.status !== void 0 && { status: this.status },
      ...this.requestId !== void 0 && { request_id: this.requestId },
      ...this.url !== void 0 && { url: this.url },
      ...this.resume !== void 0 && { resume: this.resume },
      ...this.retryAfter !== void 0 && { retry_after: this.retryAfter }
    };
  }
};
function isAgentAuthError(value) {
  return typeof value === "object" && value !== null && value[BRAND] === true;
}
function abortedError(signal) {
  if (isAgentAuthError(signal.reason)) return signal.reason;
  return new AgentAuthError("aborted", "the operation was aborted", { class: "aborted", cause: signal.reason });
}

// src/redact.ts
var MASK = "********";
var INSPECT = /* @__PURE__ */ Symbol.for("nodejs.util.inspect.custom");
var Secret = class {
  #value;
  constructor(value) {
    this.#value = value;
  }
  /** The value itself. */
  reveal() {
    return this.#value;
  }
  /** A mask. */
  toString() {
    return MASK;
  }
  /** A mask. */
  toJSON() {
    return MASK;
  }
  /** A mask, for Node's `util.inspect`. */
  [INSPECT]() {
    return MASK;
  }
};
var masking = {
  toJSON() {
    return "client_secret" in this ? { ...this, client_secret: this["client_secret"] == null ? null : MASK } : this;
  },
  [INSPECT]() {
    return masking.toJSON.call(this);
  }
};
var MASKING_PROTOTYPE = Object.defineProperties(Object.create(Object.prototype), {
  toJSON: { value: masking.toJSON },
  [INSPECT]: { value: masking[INSPECT] }
});
var UNSAFE = new RegExp("[\\p{Cc}\\p{Cf}\\p{Cs}\\p{Cn}\\p{Co}\\p{Zl}\\p{Zp}\\p{Default_Ignorable_Code_Point}\\p{Bidi_Control}\\u2800\\u{1d159}]|[^\\S ]|(?:(?!\\p{Default_Ignorable_Code_Point})\\p{M}){9,}", "gu");
var EMOJI_SELECTOR = new RegExp("(?!\\p{Cn})\\p{Extended_Pictographic}\\ufe0f$", "u");
var SAFE_ASCII = /^[\x20-\x7e]*$/;
var NAMED = { "\n": "\\n", "\r": "\\r", "	": "\\t", "\x1B": "\\e" };
function escapeText(text) {
  if (SAFE_ASCII.test(text)) return text;
  return text.replace(UNSAFE, (found, offset) => {
    if (found.length > 2) return `${[...found].slice(0, 4).join("")}\\u{+${[...found].length - 4} marks}`;
    if (found === "\uFE0F" && EMOJI_SELECTOR.test(text.slice(Math.max(0, offset - 2), offset + 1))) return found;
    return NAMED[found] ?? `\\u{${(found.codePointAt(0) ?? 0).toString(16)}}`;
  });
}
var USER_INFO = /(\/\/)[^/?#\s]+@/g;
function quote(value, max = 200) {
  const given = typeof value === "string" ? value : safeJson(value) ?? typeof value;
  const text = given.replace(USER_INFO, `$1${MASK}@`);
  const begin = wholeCharacters(text, max * 2);
  const escaped = escapeText(begin);
  const shown = wholeCharacters(escaped, max);
  const isCut = begin.length < text.length || shown.length < escaped.length;
  return `"${shown}${isCut ? "\u2026" : ""}"`;
}
function wholeCharacters(text, max) {
  return text.length > max ? text.slice(0, max).replace(/[\ud800-\udbff]$/, "") : text;
}
function safeJson(value) {
  try {
    return JSON.stringify(value);
  } catch {
    return void 0;
  }
}
var SECRET_SHAPES = [
  // The value of the flag --dpop is not a secret, and a hint must show it.
  [/\b(bearer|basic|(?<!--)dpop)(\s+)[\w\-.~+/]{6,}=*/gi, `$1$2${MASK}`],
  [
    /("(?:access_token|refresh_token|id_token|client_secret|code_verifier|assertion|subject_token|actor_token)"\s*:\s*")(?:[^"\\]|\\.)*/g,
    `$1${MASK}`
  ],
  [
    /\b((?:access_token|refresh_token|id_token|client_secret|code|code_verifier|assertion|subject_token|actor_token)=)[^&\s"']+/g,
    `$1${MASK}`
  ],
  // Begins where a run of base64url begins, and nowhere inside it: else a long run takes quadratic time.
  [/(?<![\w-])eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*/g, MASK],
  [USER_INFO, `$1${MASK}@`]
];
var Redactor = class {
  #values = /* @__PURE__ */ new Set();
  /** Remembers a value that must never be shown. Values under six characters are masked by their shape only. */
  add(value) {
    if (value.length >= 6) this.#values.add(value);
  }
  /** The text with every known secret masked: for user data, in which the shape of a secret proves nothing. */
  redactKnown(text) {
    let out = text;
    for (const value of [...this.#values].sort((a, b) => b.length - a.length)) out = out.replaceAll(value, MASK);
    return out;
  }
  /** The text with every known and every recognised secret masked. */
  redact(text) {
    let out = this.redactKnown(text);
    for (const [shape, mask] of SECRET_SHAPES) out = out.replace(shape, mask);
    return out;
  }
  [INSPECT]() {
    return "Redactor {}";
  }
};
function shellWord(word) {
  if (/^[\w@%+:,./-][\w@%+=:,./-]*$/.test(word)) return word;
  if (escapeText(word) === word) return `'${word.replaceAll("'", "'\\''")}'`;
  const format = word.replace(/./gsu, (character) => {
    if (character === "%") return "%%";
    if (/^[\\'\p{M}]$/u.test(character) || escapeText(character) !== character) return octal(character);
    return character;
  });
  return `"$(printf '${format.replace(/^-|["$`]/g, octal)}')"`;
}
function octal(character) {
  return [...new TextEncoder().encode(character)].map((byte) => `\\${byte.toString(8).padStart(3, "0")}`).join("");
}

// src/http/strict-json.ts
var StrictJsonError = class extends Error {
  name = "StrictJsonError";
  line;
  column;
  constructor(what, text, at) {
    const before = text.slice(0, at).split("\n");
    const line = before.length;
    const column = (before.at(-1)?.length ?? 0) + 1;
    super(`${what} (line ${line}, column ${column})`);
    this.line = line;
    this.column = column;
  }
};
var MAX_DEPTH = 32;
var STRING = /"(?:[ !#-[\]-\uffff]|\\(?:["\\/bfnrt]|u[\da-fA-F]{4}))*"/y;
var SCALAR = /(?:-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)/y;
var SPACE = /[ \t\r\n]*/y;
function parseStrictJson(text) {
  const reader = new Reader(text);
  const value = reader.value(0);
  reader.end();
  return value;
}
function isJsonObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
var Reader = class {
  #text;
  #at = 0;
  constructor(text) {
    this.#text = text;
  }
  value(depth) {
    if (depth > MAX_DEPTH) throw this.#error(`it is nested deeper than ${MAX_DEPTH}`);
    this.#match(SPACE);
    const mark = this.#text[this.#at];
    if (mark === "{") return this.#object(depth);
    if (mark === "[") return this.#array(depth);
    if (mark === '"') return this.#string();
    const start = this.#at;
    const scalar = this.#match(SCALAR);
    if (!scalar) throw this.#error(mark === void 0 ? "it ends too early" : "a value was expected");
    const value = JSON.parse(scalar);
    if (typeof value === "number" && !Number.isFinite(value)) throw this.#error("the number is too large", start);
    return value;
  }
  end() {
    this.#match(SPACE);
    if (this.#at < this.#text.length) throw this.#error("something follows the value");
  }
  #object(depth) {
    const object2 = /* @__PURE__ */ Object.create(null);
    this.#at++;
    if (this.#take("}")) return object2;
    do {
      this.#match(SPACE);
      const start = this.#at;
      const name = this.#string();
      if (name in object2) throw this.#error(`the name ${quote(name, 80)} appears twice in one object`, start);
      if (!this.#take(":")) throw this.#error('":" was expected');
      object2[name] = this.value(depth + 1);
    } while (this.#take(","));
    if (!this.#take("}")) throw this.#error('"," or "}" was expected');
    return object2;
  }
  #array(depth) {
    const array = [];
    this.#at++;
    if (this.#take("]")) return array;
    do
      array.push(this.value(depth + 1));
    while (this.#take(","));
    if (!this.#take("]")) throw this.#error('"," or "]" was expected');
    return array;
  }
  #string() {
    const found = this.#match(STRING);
    if (!found) throw this.#error("a string was expected");
    return JSON.parse(found);
  }
  #take(mark) {
    this.#match(SPACE);
    if (this.#text[this.#at] !== mark) return false;
    this.#at++;
    return true;
  }
  #match(shape) {
    shape.lastIndex = this.#at;
    const found = shape.exec(this.#text)?.[0] ?? "";
    this.#at += found.length;
    return found;
  }
  #error(what, at = this.#at) {
    return new StrictJsonError(what, this.#text, at);
  }
};

// src/http/url.ts
function parseUrl(value, base) {
  if (typeof value !== "string") return void 0;
  try {
    return new URL(value, base);
  } catch {
    return void 0;
  }
}

// src/oauth/client/client-binding.ts
var BOUND_BY = [
  "issuer",
  "trust-named-issuer",
  "confirmation",
  "earlier-login",
  "use"
];
function isSameBinding(one, other) {
  return one?.issuer === other?.issuer && one?.boundBy === other?.boundBy && one?.boundAt === other?.boundAt;
}

// src/oauth/grant/codec.ts
var SCHEMA = 1;
var CodecError = class extends Error {
  name = "CodecError";
};
function encodeGrant(grant, before) {
  const members = revealed({ kind: "grant", ...grant });
  const old = before === void 0 ? {} : decode(before, "grant");
  const sameLogin = old["signedInAt"] === grant.signedInAt && old["issuer"] === grant.issuer;
  return encode(sameLogin ? keepUnknown(old, members) : members);
}
function keepUnknown(old, members) {
  const unknown = Object.entries(old).filter(([name]) => !(name in members) && name !== "schema");
  const known = Object.entries(members).map(([name, value]) => {
    const before = old[name];
    return [name, isJsonObject(value) && isJsonObject(before) ? keepUnknown(before, value) : value];
  });
  return Object.fromEntries([...unknown, ...known]);
}
function encodeClient(client2) {
  return encode({ kind: "client", ...client2 });
}
function encodeBinding(binding) {
  return encode({ kind: "binding", ...binding });
}
function encode(members) {
  return `${JSON.stringify(versioned(members), null, 2)}
`;
}
function versioned(members) {
  return { schema: SCHEMA, ...revealed(members) };
}
function revealed(members) {
  const reveal = (value) => isSecret(value) ? value.reveal() : isJsonObject(value) ? revealed(value) : value;
  return Object.fromEntries(Object.entries(members).map(([name, value]) => [name, reveal(value)]));
}
function isSecret(value) {
  return typeof value?.reveal === "function";
}
function decodeGrant(text) {
  const members = decode(text, "grant");
  const grant = read(members, GRANT);
  return members["lostRefresh"] === void 0 ? grant : { ...grant, lostRefresh: lostRefresh(members, "lostRefresh") };
}
function decodeClient(text) {
  return clientOf(decode(text, "client"));
}
function decodeBinding(text) {
  const members = decode(text, "binding");
  const boundBy = string(members, "boundBy");
  if (!BOUND_BY.includes(boundBy)) throw new CodecError("boundBy is unknown");
  return {
    profile: string(members, "profile"),
    clientId: string(members, "clientId"),
    issuer: string(members, "issuer"),
    boundBy,
    boundAt: count(members, "boundAt")
  };
}
function decode(text, kind) {
  let value;
  try {
    value = parseStrictJson(text);
  } catch (cause) {
    throw new CodecError(`it is not valid JSON: ${cause instanceof Error ? cause.message : ""}`);
  }
  return membersOf(value, kind);
}
function membersOf(value, kind) {
  const members = isJsonObject(value) ? value : {};
  if (members["schema"] !== SCHEMA) {
    throw new CodecError(`its schema is ${quote(members["schema"])}, and this version reads ${SCHEMA}`);
  }
  if (members["kind"] !== kind) throw new CodecError(`it contains no ${kind}`);
  return members;
}
var METHODS = ["none", "client_secret_basic", "client_secret_post", "private_key_jwt"];
var SOURCES = ["pre-registered", "metadata-document", "dynamic"];
function clientOf(members) {
  const authMethod = string(members, "authMethod");
  const source = string(members, "source");
  if (!METHODS.includes(authMethod)) throw new CodecError("authMethod is unknown");
  if (!SOURCES.includes(source)) throw new CodecError("source is unknown");
  return {
    issuer: string(members, "issuer"),
    clientId: string(members, "clientId"),
    clientSecret: secret(members, "clientSecret"),
    secretExpiresAt: number(members, "secretExpiresAt"),
    authMethod,
    source,
    redirectUri: optional(members, "redirectUri"),
    ...members["clientName"] !== void 0 && { clientName: string(members, "clientName") },
    ...members["registeredAt"] !== void 0 && { registeredAt: numbers(members, "registeredAt") },
    ...members["isRefused"] !== void 0 && { isRefused: boolean(members, "isRefused") }
  };
}
function read(members, readers) {
  const entries = Object.entries(readers);
  return Object.fromEntries(entries.map(([name, reader]) => [name, reader(members, name)]));
}
function object(members, name) {
  const value = members[name];
  if (isJsonObject(value)) return value;
  throw new CodecError(`${name} is not an object`);
}
function string(members, name) {
  const value = members[name];
  if (typeof value === "string") return value;
  throw new CodecError(`${name} is not a string`);
}
function optional(members, name) {
  return members[name] === void 0 ? void 0 : string(members, name);
}
function requiredSecret(members, name) {
  return new Secret(string(members, name));
}
function secret(members, name) {
  const value = optional(members, name);
  return value === void 0 ? void 0 : new Secret(value);
}
function number(members, name) {
  const value = members[name];
  if (value === void 0 || typeof value === "number" && Number.isFinite(value)) return value;
  throw new CodecError(`${name} is not a number`);
}
function count(members, name) {
  return number(members, name) ?? 0;
}
function numbers(members, name) {
  const value = members[name] ?? [];
  if (Array.isArray(value) && value.every((one) => Number.isFinite(one))) return value;
  throw new CodecError(`${name} is not a list of numbers`);
}
function strings(members, name) {
  return optionalStrings(members, name) ?? [];
}
function requiredStrings(members, name) {
  const value = members[name];
  if (Array.isArray(value) && value.every((one) => typeof one === "string")) return value;
  throw new CodecError(`${name} is not a list of strings`);
}
function optionalStrings(members, name) {
  return members[name] === void 0 ? void 0 : requiredStrings(members, name);
}
function boolean(members, name) {
  const value = members[name];
  if (typeof value === "boolean") return value;
  throw new CodecError(`${name} is neither true nor false`);
}
function address(members, name) {
  const value = string(members, name);
  if (parseUrl(value) !== void 0) return value;
  throw new CodecError(`${name} is not an address`);
}
function each(reader, ...names) {
  return Object.fromEntries(names.map((name) => [name, reader]));
}
function nested(readers) {
  return (members, name) => read(object(members, name), readers);
}
var client = (members, name) => clientOf(object(members, name));
var retired = nested({ at: count, reason: string });
var lostRefresh = nested({ at: count, code: string, generation: count });
var GRANT = {
  acceptedTokenType: optional,
  ...each(string, "profile", "server"),
  account: optional,
  ...each(string, "resource", "issuer"),
  namedIssuer: optional,
  endpoints: nested({ token: string, ...each(optional, "introspection", "revocation", "endSession", "jwks") }),
  client,
  requestedScope: optional,
  overrides: strings,
  proofKey: secret,
  tokens: nested({
    accessToken: requiredSecret,
    ...each(secret, "refreshToken", "idToken"),
    expiresAt: number,
    obtainedAt: count,
    scope: optional
  }),
  signedInAt: count,
  refusals: numbers,
  generation: count,
  retired: (members, name) => members[name] === void 0 ? void 0 : retired(members, name)
};
var SERVER = {
  ...each(address, "issuer", "authorizationEndpoint", "tokenEndpoint"),
  namedIssuer: optional,
  ...each(optional, "registrationEndpoint", "introspectionEndpoint", "revocationEndpoint", "endSessionEndpoint"),
  ...each(optional, "deviceAuthorizationEndpoint", "jwksUri"),
  ...each(optionalStrings, "scopesSupported", "grantTypesSupported", "tokenEndpointAuthMethods"),
  ...each(optionalStrings, "tokenEndpointSigningAlgorithms", "dpopSigningAlgorithms"),
  ...each(boolean, "promisesIss", "takesClientIdDocuments"),
  url: string
};
var STARTED = {
  ...each(string, "profile", "server"),
  lifeMs: number,
  account: optional,
  issuer: nested(SERVER),
  client,
  scope: requiredStrings,
  resource: string,
  overrides: requiredStrings,
  acceptedTokenType: optional,
  proofKey: secret
};
var DEVICE_LOGIN = {
  ...STARTED,
  device: nested({
    deviceCode: requiredSecret,
    userCode: string,
    verificationUri: address,
    verificationUriComplete: optional,
    ...each(count, "interval", "expiresAt")
  })
};
var LOGIN = {
  ...STARTED,
  flow: (members, name) => members[name] === "paste" ? "paste" : void 0,
  addedScope: strings,
  pending: nested({
    ...each(string, "issuer", "state", "clientId"),
    ...each(address, "authorizationUrl", "redirectUri"),
    promisesIss: boolean,
    verifier: requiredSecret,
    scope: requiredStrings,
    ...each(optional, "resource", "nonce")
  })
};

// src/oauth/grant/grant-store.ts
function matchesFilter(grant, filter) {
  const names = ["profile", "server", "issuer"];
  return names.every((name) => filter[name] === void 0 || filter[name] === grant[name]);
}

// src/store/leases/file-leases.ts
import { createHash } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";

// src/oauth/grant/lease.ts
var MAX_RETRY_AFTER_MS = 5 * 6e4;
function leaseLost() {
  const message = "this process was suspended for so long that another one may have taken over";
  return new AgentAuthError("lease_lost", message, { class: "unavailable" });
}

// src/http/deadline.ts
function untilAborted(work, signal) {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(abortedError(signal));
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
  });
}

// src/store/memory-leases.ts
var MemoryLeases = class {
  #last = /* @__PURE__ */ new Map();
  /**
   * Runs work after all earlier work under the same name; a signal aborts the wait. The work learns whether it had to wait.
   */
  async run(name, work, signal) {
    const last = this.#last.get(name);
    const before = last ?? Promise.resolve();
    let done = () => {
    };
    const mine = new Promise((resolve) => {
      done = resolve;
    });
    const chained = before.then(() => mine);
    this.#last.set(name, chained);
    try {
      await (signal ? untilAborted(before, signal) : before);
      return await work(last !== void 0);
    } finally {
      done();
      if (this.#last.get(name) === chained) this.#last.delete(name);
    }
  }
};

// src/store/leases/lock-files.ts
import { linkSync as linkSync2, readFileSync as readFileSync2, renameSync as renameSync2, rmSync as rmSync2, statSync as statSync2, utimesSync, writeFileSync } from "node:fs";
import { join as join2 } from "node:path";

// src/store/file/private-file.ts
import { randomBytes } from "node:crypto";
import {
  closeSync,
  constants,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  linkSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeSync
} from "node:fs";
import { dirname, join } from "node:path";

// src/store/store-error.ts
function storeError(what, cause, hint) {
  const reason = cause?.code;
  return new AgentAuthError("store_failed", reason ? `${what} (${reason})` : what, { class: "store", hint, cause });
}
function onFiles(folder, work) {
  return async (...args) => {
    try {
      return await work(...args);
    } catch (cause) {
      const { syscall } = isAgentAuthError(cause) ? {} : cause ?? {};
      throw syscall === void 0 ? cause : storeError(`the files in ${folder} cannot be used: ${syscall} failed`, cause);
    }
  };
}

// src/store/file/private-file.ts
var MAX_BYTES = 1024 * 1024;
function makePrivateFolder(path) {
  try {
    makeFolders(path);
  } catch (cause) {
    throw storeError(
      `the folder ${path} cannot be created`,
      cause,
      "set AGENTAUTH_HOME to a folder that you can write to"
    );
  }
}
function makeFolders(path) {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory()) return;
  const parent = dirname(path);
  if (parent !== path) makeFolders(parent);
  try {
    mkdirSync(path, { mode: 448 });
  } catch (error) {
    if (!statSync(path, { throwIfNoEntry: false })?.isDirectory()) throw error;
  }
}
function checkPrivateFolder(path, against = "read") {
  let stat;
  try {
    stat = (against === "read" ? lstatSync : statSync)(path, { throwIfNoEntry: false });
  } catch (cause) {
    throw storeError(`the folder ${path} cannot be entered`, cause);
  }
  if (stat === void 0) return;
  if (!stat.isDirectory()) {
    const what = stat.isSymbolicLink() ? "is a symbolic link" : "is not a folder";
    throw storeError(`${path} ${what}`, void 0, `move it away: mv ${shellWord(path)} ${shellWord(`${path}.old`)}`);
  }
  checkOwner(`the folder ${path}`, path, stat, against === "read" ? "700" : "go-w");
}
function checkPrivateFolders(path) {
  checkPrivateFolder(dirname(path), "write");
  checkPrivateFolder(path);
}
function listFolder(path) {
  try {
    return readdirSync(path);
  } catch (cause) {
    if (cause.code === "ENOENT") return [];
    throw storeError(`the folder ${path} cannot be read`, cause);
  }
}
function checkOwner(what, path, stat, mode) {
  if (process.getuid === void 0) return;
  if (stat.uid !== process.getuid() && stat.uid !== 0) {
    throw storeError(`${what} belongs to another user`, void 0, `chown "$USER" ${shellWord(path)}`);
  }
  const loose = mode === "go-w" ? 18 : 63;
  if ((stat.mode & loose) !== 0) {
    const can = mode === "go-w" ? "written" : "read";
    throw storeError(`${what} can be ${can} by others`, void 0, `chmod ${mode} ${shellWord(path)}`);
  }
}
function readPrivateFile(path, maxBytes = MAX_BYTES) {
  let fd;
  try {
    fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (cause) {
    const code = cause.code;
    if (code === "ENOENT") return void 0;
    throw storeError(
      code === "ELOOP" ? `the file ${path} is a symbolic link` : `the file ${path} cannot be read`,
      cause
    );
  }
  try {
    const stat = fstatSync(fd);
    if (!stat.isFile()) throw storeError(`${path} is not an ordinary file`, void 0);
    if (stat.nlink > 1 && hasForeignName(path, fd)) {
      const hint = "put the secret into a file of its own";
      throw storeError(`the file ${path} has another name too (a hard link)`, void 0, hint);
    }
    checkOwner(`the file ${path}`, path, stat, "600");
    if (stat.size > maxBytes) throw storeError(`the file ${path} is larger than ${maxBytes} bytes`, void 0);
    return readFileSync(fd, "utf8");
  } finally {
    closeSync(fd);
  }
}
function hasForeignName(path, fd) {
  const folder = dirname(path);
  const { ino, dev } = fstatSync(fd);
  const temporary = readdirSync(folder).filter((name) => name.endsWith(".tmp")).map((name) => lstatSync(join(folder, name), { throwIfNoEntry: false })).filter((stat) => stat?.ino === ino && stat.dev === dev).length;
  return fstatSync(fd).nlink > 1 + temporary;
}
function reservePrivateFile(path, bytes) {
  const temporary = temporaryPath(path);
  try {
    writeSynced(temporary, Buffer.alloc(bytes), constants.O_CREAT | constants.O_EXCL);
  } catch (cause) {
    rmSync(temporary, { force: true });
    throw storeError(`the folder ${dirname(path)} cannot be written`, cause);
  }
  return temporary;
}
function publishPrivateFile(temporary, path, content) {
  try {
    writeSynced(temporary, content, 0);
    linkSync(temporary, path);
    rmSync(temporary, { force: true });
    syncFolder(dirname(path));
    return true;
  } catch (cause) {
    const { code } = cause;
    if (code === "EEXIST" || code === "ENOENT") return false;
    throw storeError(`the file ${path} cannot be written`, cause, noLinks(code));
  }
}
function noLinks(code) {
  if (code === void 0 || !["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS", "EMLINK"].includes(code)) return void 0;
  return "the file system has no hard links; set AGENTAUTH_HOME to a folder on one that has them";
}
function temporaryPath(path) {
  return `${path}.${randomBytes(6).toString("hex")}.tmp`;
}
function writeSynced(path, content, flags) {
  const fd = openSync(path, constants.O_WRONLY | constants.O_NOFOLLOW | flags, 384);
  try {
    const bytes = Buffer.from(content);
    for (let at = 0; at < bytes.length; ) at += writeSync(fd, bytes, at, bytes.length - at, at);
    ftruncateSync(fd, bytes.length);
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}
function writePrivateFile(path, content) {
  const folder = dirname(path);
  makePrivateFolder(folder);
  const temporary = temporaryPath(path);
  try {
    writeSynced(temporary, content, constants.O_CREAT | constants.O_EXCL);
    renameSync(temporary, path);
    syncFolder(folder);
  } catch (cause) {
    rmSync(temporary, { force: true });
    throw storeError(`the file ${path} cannot be written`, cause);
  }
}
function syncFolder(folder) {
  if (process.platform === "win32") return;
  const fd = openSync(folder, constants.O_RDONLY);
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}
function removeFile(path) {
  try {
    rmSync(path, { force: true });
  } catch (cause) {
    throw storeError(`the file ${path} cannot be removed`, cause);
  }
}

// src/store/leases/lock-record.ts
import { randomBytes as randomBytes2 } from "node:crypto";
function lockId() {
  return randomBytes2(6).toString("hex");
}
function parseLockRecord(value) {
  const { id, holder, at, deadline, duration, extend } = value ?? {};
  if (typeof id !== "string" || !isHolder(holder) || typeof extend !== "boolean") return void 0;
  if (!isNumber(at) || !isNumber(deadline) || !isNumber(duration)) return void 0;
  return { id, holder, at, deadline, duration, extend };
}
function parseLeaseOutcome(value) {
  const { at, failure } = value ?? {};
  if (!isNumber(at)) return void 0;
  return { at, failure: isFailure(failure) ? failure : void 0 };
}
function isHolder(value) {
  if (!isJsonObject(value) || !Number.isInteger(value["pid"]) || Number(value["pid"]) < 1) return false;
  return ["boot", "space", "started"].every((name) => typeof value[name] === "string");
}
function isFailure(value) {
  if (!isJsonObject(value) || !["code", "class", "message"].every((name) => typeof value[name] === "string"))
    return false;
  const { remedy = { action: "" } } = value;
  return isJsonObject(remedy) && typeof remedy["action"] === "string";
}
function isNumber(value) {
  return Number.isFinite(value);
}

// src/store/leases/lock-files.ts
var OLD_MS = 24 * 3600 * 1e3;
var SWEEP_THRESHOLD = 200;
var LockFiles = class {
  #folder;
  constructor(folder) {
    this.#folder = folder;
  }
  /**
   * The newest attempt; undefined when there is no trace of one.
   *
   * @param below only attempts with smaller numbers than this
   */
  latest(name, below = Number.POSITIVE_INFINITY) {
    const traces = this.#traces(name).filter((trace) => trace.number < below);
    const numbers2 = traces.flatMap(({ number: number3, mark }) => mark ? [] : [number3]);
    if (numbers2.length === 0) return void 0;
    const number2 = Math.max(...numbers2);
    const record = parseLockRecord(this.#json(`${name}.${number2}.claim`));
    const has = (kind) => traces.some(({ number: of, mark }) => {
      return of === number2 && mark?.kind === kind && (record === void 0 || mark.id === record.id);
    });
    return { number: number2, record, committed: has("sent"), done: has("done") };
  }
  /**
   * Starts an attempt; false when another process has its number, or the newest attempt is no longer the observed one.
   *
   * @param observed the attempt before, from which the caller takes over; undefined when there was none
   */
  take({ name, number: number2 }, record, observed) {
    makePrivateFolder(this.#folder);
    checkPrivateFolder(this.#folder);
    const path = this.#path(`${name}.${number2}.claim`);
    const temporary = temporaryPath(this.#path(name));
    try {
      writeFileSync(temporary, JSON.stringify(record), { mode: 384, flag: "wx" });
      linkSync2(temporary, path);
    } catch (cause) {
      if (cause.code === "EEXIST") return false;
      throw storeError(`the file ${path} cannot be created`, cause, noLinks(cause.code));
    } finally {
      remove(temporary);
    }
    try {
      const before = this.latest(name, number2);
      const isUnchanged = before?.number === observed?.number && before?.record?.id === observed?.record?.id;
      const isTaken = isUnchanged && this.isNewest({ name, number: number2, id: record.id });
      if (isTaken) this.#sweep(name, number2);
      else remove(path);
      return isTaken;
    } catch (error) {
      remove(path);
      throw error;
    }
  }
  /** Whether this attempt is the newest. */
  isNewest({ name, number: number2, id }) {
    const latest = this.latest(name);
    return latest?.number === number2 && latest.record?.id === id;
  }
  /** The recorded end of an attempt. */
  ending({ name, number: number2, id }) {
    return parseLeaseOutcome(this.#json(`${name}.${number2}.${id}.done`));
  }
  /** Marks an attempt as having begun what must not happen twice. */
  commit(attempt) {
    this.#mark(attempt, "sent", "");
  }
  /** Records the end of an attempt. */
  finish(attempt, ending) {
    this.#mark(attempt, "done", JSON.stringify(ending));
  }
  /** Removes an attempt, so that the one before it is the newest again; false when that failed. */
  rollback(attempt) {
    return this.#forget(attempt, ({ number: number2 }) => number2 === attempt.number);
  }
  /** Removes all files of a name up to this attempt; false when that failed. */
  forget(attempt) {
    return this.#forget(attempt, ({ number: number2 }) => number2 <= attempt.number);
  }
  /** The heartbeat of the holder of an attempt; false when another process has taken over. */
  beat(attempt) {
    if (!this.isNewest(attempt)) return false;
    const now = /* @__PURE__ */ new Date();
    utimesSync(this.#path(`${attempt.name}.${attempt.number}.claim`), now, now);
    return true;
  }
  /** The last heartbeat of the holder, by the clock of the file system; undefined when the lock file is gone. */
  lastBeat(name, number2) {
    return this.#touched(`${name}.${number2}.claim`);
  }
  /** Where the lock file belongs to another attempt by now, so do the chosen files: only marks with our id are removed. */
  #forget(attempt, chosen) {
    const { name, number: number2, id } = attempt;
    const owner = parseLockRecord(this.#json(`${name}.${number2}.claim`))?.id;
    if (owner === void 0 && this.lastBeat(name, number2) !== void 0) return false;
    const traces = this.#traces(name).filter((trace) => trace.mark?.id === id || owner === id && chosen(trace));
    const lockFiles = traces.filter(({ mark }) => !mark).sort((a, b) => a.number - b.number);
    const removed = [...traces.filter(({ mark }) => mark), ...lockFiles].map(({ file }) => remove(this.#path(file)));
    return removed.every(Boolean);
  }
  #mark({ name, number: number2, id }, kind, text) {
    const path = this.#path(`${name}.${number2}.${id}.${kind}`);
    const temporary = temporaryPath(this.#path(name));
    try {
      writeFileSync(temporary, text, { mode: 384, flag: "wx" });
      renameSync2(temporary, path);
    } catch (cause) {
      remove(temporary);
      throw storeError(`the file ${path} cannot be written`, cause);
    }
  }
  #json(file) {
    try {
      const value = JSON.parse(readFileSync2(this.#path(file), "utf8"));
      return isJsonObject(value) ? value : void 0;
    } catch {
      return void 0;
    }
  }
  #path(file) {
    return join2(this.#folder, file);
  }
  #traces(name) {
    return listFolder(this.#folder).flatMap((file) => {
      if (!file.startsWith(`${name}.`)) return [];
      const parts = /^(\d{1,12})\.(?:claim|([0-9a-f]{12})\.(sent|done))$/.exec(file.slice(name.length + 1));
      if (!parts) return [];
      const [, number2, id, kind] = parts;
      return [{ file, number: Number(number2), mark: id ? { id, kind } : void 0 }];
    });
  }
  /** Removes the attempts that no process reads any more, those before the previous one, and old files of other names. */
  #sweep(name, number2) {
    for (const { file, number: other } of this.#traces(name)) {
      if (other < number2 - 1) remove(this.#path(file));
    }
    const all = listFolder(this.#folder);
    if (all.length < SWEEP_THRESHOLD) return;
    const before = Date.now() - OLD_MS;
    for (const file of all.filter((one) => !one.startsWith(`${name}.`))) {
      if ((this.#touched(file) ?? before) < before) remove(this.#path(file));
    }
  }
  /** When a file was last written or touched; undefined where that is unknown. */
  #touched(file) {
    try {
      return statSync2(this.#path(file)).mtimeMs;
    } catch {
      return void 0;
    }
  }
};
function remove(path) {
  try {
    rmSync2(path, { force: true });
    return true;
  } catch {
    return false;
  }
}

// src/store/leases/lock-owner.ts
import { readFileSync as readFileSync3, readlinkSync } from "node:fs";
import { hostname, uptime } from "node:os";
var CLOCK_CHANGE_MS = 12e4;
var self;
function thisProcess() {
  const { pid } = process;
  self ??= { pid, boot: bootOf(), space: namespace("pid"), started: startOf(pid)?.started ?? ownStart() };
  return self;
}
function bootClock() {
  return Number(process.hrtime.bigint() / 1000000n);
}
function livenessOf(holder) {
  const me = thisProcess();
  if (holder.boot !== me.boot || holder.space !== me.space) return "unknown";
  const found = process.platform === "linux" ? startOf(holder.pid) : void 0;
  if (found === void 0) return probeBySignal(holder);
  return found.started === holder.started && !found.ended ? "alive" : "dead";
}
function ownStart() {
  return String(Math.round(Date.now() - process.uptime() * 1e3));
}
function probeBySignal({ pid, started }) {
  const isOfThisBoot = Number(started) > Date.now() - uptime() * 1e3 - CLOCK_CHANGE_MS;
  if (process.platform !== "linux" && !isOfThisBoot) return "dead";
  try {
    process.kill(pid, 0);
    return "alive";
  } catch (error) {
    return error.code === "ESRCH" ? "dead" : "alive";
  }
}
function bootOf() {
  try {
    return `${readFileSync3("/proc/sys/kernel/random/boot_id", "utf8").trim()} ${namespace("time")}`;
  } catch {
    return `host ${hostname()}`;
  }
}
function namespace(kind) {
  try {
    return readlinkSync(`/proc/self/ns/${kind}`);
  } catch {
    return "";
  }
}
function startOf(pid) {
  try {
    const text = readFileSync3(`/proc/${pid}/stat`, "utf8");
    const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
    return { started: fields[19] ?? "", ended: fields[0] === "Z" || fields[0] === "X" };
  } catch {
    return void 0;
  }
}

// src/store/leases/send-deadline.ts
import { AsyncLocalStorage } from "node:async_hooks";
import { subscribe } from "node:diagnostics_channel";
var current = new AsyncLocalStorage();
var leaseOf = /* @__PURE__ */ new WeakMap();
var listening = false;
function withSendDeadline(lease, work) {
  listen();
  return current.run(lease, work);
}
function listen() {
  if (listening) return;
  listening = true;
  subscribe("undici:request:create", (message) => {
    const lease = current.getStore();
    if (lease) leaseOf.set(message.request, lease);
  });
  subscribe("undici:client:sendHeaders", (message) => {
    const { request, socket } = message;
    if (leaseOf.get(request)?.left() === 0) socket.destroy();
  });
}

// src/store/leases/takeover.ts
var SKEW_MS = 12e4;
var COMMITTED_FACTOR = 3;
function decideTakeover({
  done,
  owner,
  sent,
  isExpired
}) {
  if (done) return "released";
  if (owner === "dead") return "died";
  if (owner === "alive" && sent) return "wait";
  return isExpired ? "expired" : "wait";
}
function hasExpired(record, sent, { boot, now, epoch, beat, watched }) {
  const time = record.duration * (sent ? COMMITTED_FACTOR : 1);
  if (watched > time) return true;
  if (record.holder.boot === boot) return !record.extend && now >= record.deadline + time - record.duration;
  return epoch - (beat ?? record.at) > time + SKEW_MS;
}

// src/store/leases/file-leases.ts
var POLL_MS = { first: 10, most: 100 };
var FileLeases = class {
  #files;
  #here = new MemoryLeases();
  constructor(folder) {
    this.#files = new LockFiles(folder);
  }
  /** As `GrantStore.lease`. The callers in one process queue up before they read the files. */
  run(name, work, options) {
    const key = createHash("sha256").update(name).digest("hex").slice(0, 40);
    const requestedAt = Date.now();
    return this.#here.run(key, (waited) => this.#hold({ key, waited, requestedAt }, work, options), options.signal);
  }
  async #hold({ key, waited, requestedAt }, work, options) {
    const taken = await this.#take(key, options);
    if ("instead" in taken) return taken.instead;
    const isOlder = (taken.before?.endedAt ?? requestedAt) < requestedAt;
    const held = new HeldLease(this.#files, { ...taken, waited: (taken.waited || waited) && !isOlder }, options);
    try {
      const result = await (options.extend ? work(held) : withSendDeadline(held, () => work(held)));
      held.succeed();
      return result;
    } catch (error) {
      held.fail(error);
      throw error;
    } finally {
      held.end();
    }
  }
  async #take(key, options) {
    const since = bootClock();
    let waited = false;
    const watch = new Watch(this.#files, key, options.duration);
    for (let pause = POLL_MS.first; ; pause = Math.min(pause * 1.5, POLL_MS.most)) {
      if (options.signal?.aborted) throw abortedError(options.signal);
      const seen = watch.observe();
      if (seen.free) {
        const record = recordFor(options);
        const attempt = { name: key, number: (seen.latest?.number ?? 0) + 1, id: record.id };
        if (this.#files.take(attempt, record, seen.latest)) return { attempt, record, before: seen.before, waited };
        continue;
      }
      if (!waited) options.onWait?.({ pid: seen.record?.holder.pid, at: seen.record?.at ?? Date.now() });
      waited = true;
      const instead = await options.until?.();
      if (instead !== void 0) return { instead };
      if (bootClock() - since > (options.patience ?? Number.POSITIVE_INFINITY)) throw busy(seen.record);
      await sleep(pause * (0.5 + Math.random()), void 0, options.signal ? { signal: options.signal } : {}).catch(
        () => void 0
      );
    }
  }
};
function recordFor({ duration, extend = false }) {
  return { id: lockId(), holder: thisProcess(), at: Date.now(), deadline: bootClock() + duration, duration, extend };
}
var Watch = class {
  #files;
  #key;
  #duration;
  #seen = "";
  #seenAt = 0;
  /** @param duration milliseconds after which an unreadable lock expires */
  constructor(files, key, duration) {
    this.#files = files;
    this.#key = key;
    this.#duration = duration;
  }
  observe() {
    const now = bootClock();
    const latest = this.#files.latest(this.#key);
    if (!latest) return { free: true, latest, before: void 0, record: void 0 };
    const { number: number2, committed, record, done } = latest;
    const beat = this.#follow(latest, now);
    const watched = now - this.#seenAt;
    const clocks = { boot: thisProcess().boot, now, epoch: Date.now(), beat, watched };
    const isExpired = record ? hasExpired(record, committed, clocks) : watched > this.#duration;
    const owner = record && !done ? livenessOf(record.holder) : "unknown";
    const ended = decideTakeover({ done, owner, sent: committed, isExpired });
    if (ended === "wait") return { free: false, latest, before: void 0, record };
    const ending = done && record ? this.#files.ending({ name: this.#key, number: number2, id: record.id }) : void 0;
    const before = { at: record?.at ?? 0, endedAt: ending?.at, ended, committed, failure: ending?.failure };
    return { free: true, latest, before, record };
  }
  /** An attempt is watched from when it is first seen, or from its last heartbeat. */
  #follow({ number: number2, record }, now) {
    const beat = this.#files.lastBeat(this.#key, number2);
    const seen = `${number2} ${record?.id} ${beat}`;
    if (seen !== this.#seen) this.#seenAt = now;
    this.#seen = seen;
    return beat;
  }
};
var HeldLease = class {
  before;
  waited;
  #files;
  #attempt;
  #once;
  #duration;
  #timer;
  #from;
  #isRolledBack = false;
  constructor(files, { attempt, record, before, waited }, options) {
    this.#files = files;
    this.#attempt = attempt;
    this.#once = options.once === true;
    this.#duration = record.duration;
    this.before = before;
    this.waited = waited;
    this.#from = { clock: record.deadline - record.duration, epoch: record.at };
    if (options.extend) this.#timer = setInterval(() => this.#beat(), record.duration / 5).unref();
  }
  /** The epoch too: the clock of a machine that sleeps stops, while the other machines that share the folder count on. */
  left() {
    const gone = Math.max(bootClock() - this.#from.clock, Date.now() - this.#from.epoch);
    return Math.max(0, this.#duration - gone);
  }
  async commit() {
    this.#files.commit(this.#attempt);
    if (this.left() === 0 || !this.#files.isNewest(this.#attempt)) throw leaseLost();
  }
  rollback() {
    this.#isRolledBack = true;
  }
  succeed() {
    if (!this.#once || !this.#removed("forget")) this.#end(void 0);
  }
  /** The next holder sees only errors of this package. */
  fail(error) {
    if (!this.#isRolledBack || !this.#removed("rollback")) this.#end(isAgentAuthError(error) ? error : void 0);
  }
  #end(failure) {
    try {
      this.#files.finish(this.#attempt, { at: Date.now(), failure: failure?.toJSON() });
    } catch {
      this.#removed("rollback");
    }
  }
  /** Whether the files of the attempt were removed: the work has ended, and an error here does not change that. */
  #removed(how) {
    try {
      return this.#files[how](this.#attempt);
    } catch {
      return false;
    }
  }
  end() {
    clearInterval(this.#timer);
  }
  #beat() {
    const from = { clock: bootClock(), epoch: Date.now() };
    try {
      if (this.#files.beat(this.#attempt)) this.#from = from;
      else this.end();
    } catch {
    }
  }
};
function busy(record) {
  const who = record ? `process ${record.holder.pid}, which holds it since ${new Date(record.at).toISOString()},` : "another process";
  return new AgentAuthError("lease_busy", `${who} holds the lock and does not release it`, {
    class: "unavailable",
    hint: record ? `if it is stopped, resume it: kill -CONT ${record.holder.pid}` : void 0
  });
}

// src/store/file/cipher.ts
var CipherError = class extends Error {
  name = "CipherError";
};

// src/store/file/file-bindings.ts
import { existsSync } from "node:fs";
import { join as join3 } from "node:path";
var NAME = /^([0-9a-f]{40})\.json$/;
var LEASE_MS = 1e4;
function fileBindings(folder, { open, seal, lease, idOf }) {
  const bindings = join3(folder, "bindings");
  const pathOf = (id) => join3(bindings, `${id}.json`);
  const read2 = async (id) => {
    checkPrivateFolders(bindings);
    const path = pathOf(id);
    const text = readPrivateFile(path);
    return text === void 0 ? void 0 : open(text, path, `binding:${id}`, (plain) => decodeStored2(plain, id));
  };
  const decodeStored2 = (text, id) => {
    const binding = decodeBinding(text);
    if (idOf(binding) !== id) throw new CodecError("its name is that of another client");
    return binding;
  };
  const exclusively = (id, work) => lease(`binding ${id}`, work, { duration: LEASE_MS, once: true });
  return {
    readBinding: onFiles(folder, (key) => read2(idOf(key))),
    saveBinding: onFiles(folder, (binding, expected) => {
      const id = idOf(binding);
      return exclusively(id, async () => {
        const stored = await read2(id);
        if (stored !== void 0 && !isSameBinding(stored, expected)) return stored;
        writePrivateFile(pathOf(id), await seal(encodeBinding(binding), `binding:${id}`));
        return binding;
      });
    }),
    // An unreadable binding can be removed too: that exposes no credential, and the user is asked again.
    removeBinding: onFiles(folder, async (key) => {
      const path = pathOf(idOf(key));
      checkPrivateFolders(bindings);
      const isThere = existsSync(path);
      removeFile(path);
      return isThere;
    }),
    listBindings: onFiles(folder, async () => {
      checkPrivateFolders(bindings);
      const all = await Promise.all(
        listFolder(bindings).flatMap((name) => NAME.exec(name)?.[1] ?? []).map(read2)
      );
      return all.filter((binding) => binding !== void 0);
    })
  };
}

// src/store/file/file-records.ts
import { renameSync as renameSync3, statSync as statSync3, utimesSync as utimesSync2 } from "node:fs";
import { join as join4 } from "node:path";
function fileRecords(home, cipher) {
  const folder = join4(home, "pending");
  const pathOf = (id) => {
    if (!/^[a-z0-9-]{1,80}$/.test(id)) throw new TypeError("an id has at most 80 letters and digits");
    return join4(folder, `${id}.json`);
  };
  return {
    put: onFiles(home, async (id, text, { now, expiresAt }) => {
      const path = pathOf(id);
      const content = cipher ? await cipher.seal(text, `pending:${id}`) : text;
      makePrivateFolder(folder);
      checkPrivateFolders(folder);
      removeExpired(folder, now);
      const temporary = reservePrivateFile(path, content.length);
      try {
        if (!publishPrivateFile(temporary, path, content)) return false;
      } finally {
        removeFile(temporary);
      }
      utimesSync2(path, new Date(expiresAt), new Date(expiresAt));
      return true;
    }),
    take: onFiles(home, async (id) => {
      checkPrivateFolders(folder);
      const path = pathOf(id);
      const taken = temporaryPath(path);
      try {
        renameSync3(path, taken);
      } catch (cause) {
        if (cause.code === "ENOENT") return void 0;
        throw storeError(`the file ${path} cannot be taken`, cause);
      }
      try {
        const content = readPrivateFile(taken);
        return content !== void 0 && cipher ? await cipher.open(content, `pending:${id}`) : content;
      } finally {
        removeFile(taken);
      }
    })
  };
}
var GRACE_MS = 6e4;
function removeExpired(folder, now) {
  for (const name of listFolder(folder)) {
    const path = join4(folder, name);
    const stat = statSync3(path, { throwIfNoEntry: false });
    if (stat && stat.mtimeMs + GRACE_MS <= now) removeFile(path);
  }
}

// src/store/file/versioned-files.ts
import { rmSync as rmSync3, statSync as statSync4 } from "node:fs";
import { join as join5 } from "node:path";
var NAME2 = /^([0-9a-f]{40})\.(\d{1,15})\.json$/;
var LEFTOVER_MS = 10 * 6e4;
var MAX_READS = 3;
var VersionedFiles = class {
  #folder;
  constructor(folder) {
    this.#folder = folder;
  }
  /** The record; undefined when there is none. */
  read(id) {
    for (; ; ) {
      const generation = this.#of(id)[0];
      if (generation === void 0) return void 0;
      const path = this.#path(id, generation);
      const text = readPrivateFile(path);
      if (text !== void 0) return { generation, text, path };
    }
  }
  /** The ids of all records. */
  ids() {
    return [...new Set(listFolder(this.#folder).flatMap((name) => NAME2.exec(name)?.[1] ?? []))].sort();
  }
  /** The generation that is stored, without reading it. */
  generation(id) {
    return this.#of(id)[0];
  }
  /** Reserves disk space for a record of up to `bytes`; the path is for {@link publish}. */
  reserve(id, bytes) {
    this.#sweep();
    return reservePrivateFile(join5(this.#folder, id), bytes);
  }
  /**
   * Makes `generation` the record in place of `expected`.
   *
   * @returns false when something else is stored than was expected
   */
  publish(id, reserved, content) {
    const { text, generation, expected } = content;
    if (generation <= (expected ?? -1)) throw new RangeError("a generation must be higher than the one it replaces");
    if (this.#of(id)[0] !== expected) return false;
    const path = this.#path(id, generation);
    if (!publishPrivateFile(reserved, path, text)) return false;
    const found = this.#of(id);
    const wasRemoved = expected !== void 0 && !found.includes(expected) && (found[0] ?? 0) <= generation;
    if (wasRemoved || expected === void 0 && found.some((other) => other < generation)) {
      removeFile(path);
      return false;
    }
    for (const other of found) if (other < generation) rmSync3(this.#path(id, other), { force: true });
    return true;
  }
  /** Removes a record, after its reserved files, which could otherwise be published in between. */
  remove(id) {
    for (const name of listFolder(this.#folder)) {
      if (name.startsWith(`${id}.`) && name.endsWith(".tmp")) removeFile(join5(this.#folder, name));
    }
    for (let found = this.#of(id); found.length > 0; found = this.#of(id)) {
      for (const generation of found) removeFile(this.#path(id, generation));
    }
    if (statSync4(this.#folder, { throwIfNoEntry: false })) syncFolder(this.#folder);
  }
  /** The stored generations of a record, the highest first. */
  #of(id) {
    for (let reads = 1; ; reads++) {
      const found = listFolder(this.#folder).flatMap((name) => {
        const parts = NAME2.exec(name);
        return parts?.[1] === id ? [Number(parts[2])] : [];
      });
      if (found.length > 0 || reads === MAX_READS) return found.sort((a, b) => b - a);
    }
  }
  #path(id, generation) {
    return join5(this.#folder, `${id}.${generation}.json`);
  }
  /** A process that was killed leaves its temporary file; no save takes this long. */
  #sweep() {
    const before = Date.now() - LEFTOVER_MS;
    for (const name of listFolder(this.#folder)) {
      if (!name.endsWith(".tmp")) continue;
      const stat = statSync4(join5(this.#folder, name), { throwIfNoEntry: false });
      if (stat && stat.mtimeMs < before) rmSync3(join5(this.#folder, name), { force: true });
    }
  }
};

// src/store/file/file.ts
var RESERVED_BYTES = 32 * 1024;
function fileStore(folder, { cipher } = {}) {
  const grants = join6(folder, "grants");
  const clients = join6(folder, "clients");
  const generations = new VersionedFiles(grants);
  const leases = new FileLeases(join6(folder, "claims"));
  const open = async (text, path, name, decode2) => {
    try {
      return decode2(cipher ? await cipher.open(text, name) : text);
    } catch (cause) {
      throw unusable(path, cause);
    }
  };
  const seal = async (text, name) => cipher ? cipher.seal(text, name) : text;
  const bindings = fileBindings(folder, {
    open,
    seal,
    lease: (name, work, options) => leases.run(name, work, options),
    idOf: ({ profile, clientId }) => digest(profile, clientId)
  });
  const readGrant = async (id) => {
    checkPrivateFolders(grants);
    const stored = generations.read(id);
    return stored && open(stored.text, stored.path, `grant:${id}`, (text) => decodeStored(text, id, stored.generation));
  };
  const reserve = async (key) => {
    const id = grantId(key);
    makePrivateFolder(grants);
    checkPrivateFolders(grants);
    const before = generations.read(id);
    let reserved = generations.reserve(id, RESERVED_BYTES);
    return {
      save: onFiles(folder, async (grant, expected) => {
        const name = `grant:${id}`;
        const old = generations.read(id);
        if (old?.generation !== expected || old?.text !== before?.text) return false;
        const checked = (text2) => decodeStored(text2, id, old?.generation) && text2;
        const oldText = old && await open(old.text, old.path, name, checked);
        const text = await seal(encodeGrant(grant, oldText), name);
        const content = { text, generation: grant.generation, expected };
        if (generations.publish(id, reserved, content)) return true;
        if (generations.generation(id) !== expected) return false;
        reserved = generations.reserve(id, RESERVED_BYTES);
        return generations.publish(id, reserved, content);
      }),
      async release() {
        try {
          rmSync4(reserved, { force: true });
        } catch {
        }
      }
    };
  };
  return {
    location: folder,
    read: onFiles(folder, (key) => readGrant(grantId(key))),
    reserve: onFiles(folder, reserve),
    save: onFiles(folder, async (grant, expected) => {
      const reservation = await reserve(grant);
      try {
        return await reservation.save(grant, expected);
      } finally {
        await reservation.release();
      }
    }),
    remove: onFiles(folder, async (key) => generations.remove(grantId(key))),
    list: onFiles(folder, async (filter = {}, onUnusable = () => {
    }) => {
      checkPrivateFolders(grants);
      const read2 = onFiles(folder, readGrant);
      const skipUnusable = (error) => {
        if (!isAgentAuthError(error) || error.class !== "store" && error.class !== "auth") throw error;
        onUnusable(error);
      };
      const all = await Promise.all(generations.ids().map((id) => read2(id).catch(skipUnusable)));
      return all.filter((grant) => grant !== void 0).filter((grant) => matchesFilter(grant, filter));
    }),
    readClient: onFiles(folder, async (issuer, form) => {
      const id = digest(issuer, form);
      const path = join6(clients, `${id}.json`);
      checkPrivateFolders(clients);
      const text = readPrivateFile(path);
      return text === void 0 ? void 0 : open(text, path, `client:${id}`, decodeClient);
    }),
    saveClient: onFiles(folder, async (client2, form) => {
      const id = digest(client2.issuer, form);
      checkPrivateFolders(clients);
      writePrivateFile(join6(clients, `${id}.json`), await seal(encodeClient(client2), `client:${id}`));
    }),
    ...bindings,
    shortLived: fileRecords(folder, cipher),
    lease: (name, work, options) => leases.run(name, work, options)
  };
}
function grantId({ profile, server, account }) {
  return account === void 0 ? digest(profile, server) : digest(profile, server, account);
}
function digest(...parts) {
  return createHash2("sha256").update(parts.join("\n")).digest("hex").slice(0, 40);
}
function decodeStored(text, id, generation) {
  const grant = decodeGrant(text);
  if (grant.generation !== generation) throw new CodecError(`its generation is ${grant.generation}, unlike its name's`);
  if (grantId(grant) !== id) throw new CodecError("its name is that of another login");
  return grant;
}
function unusable(path, cause) {
  const aside = `mv ${shellWord(path)} ${shellWord(`${path}.broken`)}`;
  if (cause instanceof CodecError) {
    return storeError(`the file ${path} cannot be used: ${cause.message}`, cause, `move it away: ${aside}`);
  }
  if (!(cause instanceof CipherError)) return cause;
  return new AgentAuthError("login_required", `the file ${path} cannot be opened: ${cause.message}`, {
    class: "auth",
    hint: `move it away, then log in again: ${aside}`,
    cause
  });
}
export {
  fileStore
};
