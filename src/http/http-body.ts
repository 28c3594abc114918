import type { BodyContent, ByteStream } from "./body-content.js";
import { HttpFormData } from "./http-form-data.js";
import type { HttpHeaders } from "./http-headers.js";
import { mimeTypeOf, parseForm, serializeMimeType } from "./multipart.js";

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
  async formData(): Promise<HttpFormData> {
    const bytes = await this.#bytes();
    const type = mimeTypeOf(this.#headers.get("content-type"));
    if (type?.essence === "multipart/form-data") return parseForm(bytes, type.parameters.get("boundary") ?? "");
    if (type?.essence !== "application/x-www-form-urlencoded") {
      throw new TypeError(
        "formData() reads a body of the type multipart/form-data or application/x-www-form-urlencoded",
      );
    }
    const form = new HttpFormData();
    const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
    for (const [name, value] of new URLSearchParams(decoder.decode(bytes))) form.append(name, value);
    return form;
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
