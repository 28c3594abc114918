import type { BodyContent, ByteStream } from "./body-content.js";

import type { HttpHeaders } from "./http-headers.js";
import { mimeTypeOf, serializeMimeType } from "./mime-type.js";

type FormReader = (bytes: Uint8Array<ArrayBuffer>, type: string | null) => FormData | Promise<FormData>;

const readByRuntime: FormReader = (bytes, type) =>
  new Response(bytes, { headers: type === null ? {} : { "content-type": type } }).formData();

let formReader = readByRuntime;

/** Has a function read forms in place of the runtime: in a process whose `Response` is ours, there is no other. */
export function readFormsWith(reader: FormReader = readByRuntime): void {
  formReader = reader;
}

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
    return (await this.#bytes()).buffer;
  }

  async blob(): Promise<Blob> {
    const bytes = await this.#bytes();
    return new Blob([bytes], { type: serializeMimeType(mimeTypeOf(this.#headers.get("content-type"))) });
  }

  async bytes(): Promise<Uint8Array<ArrayBuffer>> {
    return this.#bytes();
  }

  /** @throws `TypeError` for a body that is no form of one of the two types, `multipart/form-data` and urlencoded */
  async formData(): Promise<FormData> {
    return formReader(await this.#bytes(), this.#headers.get("content-type"));
  }

  async json(): Promise<unknown> {
    return JSON.parse(await this.#content.readText());
  }

  async text(): Promise<string> {
    return this.#content.readText();
  }

  async #bytes(): Promise<Uint8Array<ArrayBuffer>> {
    const parts: Uint8Array<ArrayBuffer>[] = [];
    let length = 0;
    await this.#content.readTo((part) => {
      parts.push(part);
      length += part.byteLength;
    });
    const bytes = new Uint8Array(length);
    let at = 0;
    for (const part of parts) {
      bytes.set(part, at);
      at += part.byteLength;
    }
    return bytes;
  }
}

/** The dictionary of options of a constructor. @throws `TypeError` for what is no object */
export function checkOptions<Options extends object>(given: Options | null | undefined): Partial<Options> {
  if (given === undefined || given === null) return {};
  if (typeof given !== "object") throw new TypeError("options are an object");
  return given;
}
