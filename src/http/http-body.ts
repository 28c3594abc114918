import type { BodyContent, ByteStream } from "./body-content.js";
import type { HttpHeaders } from "./http-headers.js";

/** What a request and a response have in common: the interface mixin `Body` of the Fetch Standard. */
export abstract class HttpBody {
  readonly #content: BodyContent;
  readonly #headers: HttpHeaders;

  constructor(content: BodyContent, type: string | null, headers: HttpHeaders) {
    this.#content = content;
    this.#headers = headers;
    if (type !== null && !headers.has("content-type")) headers.set("content-type", type);
  }

  get headers(): HttpHeaders {
    return this.#headers;
  }

  get body(): ByteStream | null {
    return this.#content.stream;
  }

  get bodyUsed(): boolean {
    return this.#content.isUsed;
  }

  async arrayBuffer(): Promise<ArrayBuffer> {
    return this.#native().arrayBuffer();
  }

  async blob(): Promise<Blob> {
    return this.#native().blob();
  }

  async bytes(): Promise<Uint8Array<ArrayBuffer>> {
    return new Uint8Array(await this.arrayBuffer());
  }

  async formData(): Promise<FormData> {
    return this.#native().formData();
  }

  async json(): Promise<unknown> {
    return JSON.parse(await this.#content.readText());
  }

  async text(): Promise<string> {
    return this.#content.readText();
  }

  /** What our commands do not ask for is read by the class of the runtime. */
  #native(): Response {
    this.#content.check();
    const type = this.#headers.get("content-type");
    return new (nativeClass("Response"))(this.body, { headers: type === null ? {} : { "content-type": type } });
  }
}

/**
 * A class of the runtime, which ours replace in the process of a command line: no command needs it there. It is not kept at
 * the start, since on Node 24 reading the property, or its descriptor, loads all of `fetch`.
 */
export function nativeClass<Name extends "Request" | "Response">(name: Name): (typeof globalThis)[Name] {
  const found = globalThis[name];
  if (found.prototype instanceof HttpBody) throw new TypeError(`this process has replaced the ${name} of the runtime`);
  return found;
}

/** The dictionary of options of a constructor. @throws `TypeError` for what is no object */
export function checkOptions<Options extends object>(given: Options | null | undefined): Partial<Options> {
  if (given === undefined || given === null) return {};
  if (typeof given !== "object") throw new TypeError("options are an object");
  return given;
}
