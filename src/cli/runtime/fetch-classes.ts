import { HttpFormData } from "../../http/http-form-data.js";
import { HttpHeaders } from "../../http/http-headers.js";
import { HttpRequest } from "../../http/http-request.js";
import { HttpResponse } from "../../http/http-response.js";

/**
 * Makes our classes of the Fetch Standard those of the process: to touch Node's own loads all of `fetch`, which takes a
 * short command longer than the rest of its start. Assigned plainly, since defining the property loads it, too.
 */
export function installFetchClasses(): void {
  globalThis.FormData = HttpFormData;
  globalThis.Headers = HttpHeaders;
  globalThis.Request = HttpRequest;
  globalThis.Response = HttpResponse;
}
