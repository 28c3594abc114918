/** What a request says beside its method, address, headers and body (Fetch Standard, `RequestInit`). */
export interface RequestOptions {
  readonly cache: Request["cache"];
  readonly credentials: Request["credentials"];
  readonly integrity: string;
  readonly keepalive: boolean;
  readonly mode: Request["mode"];
  readonly redirect: Request["redirect"];
  readonly referrer: string;
  readonly referrerPolicy: Request["referrerPolicy"];
}

const DEFAULTS: RequestOptions = {
  cache: "default",
  credentials: "same-origin",
  integrity: "",
  keepalive: false,
  mode: "cors",
  redirect: "follow",
  referrer: "about:client",
  referrerPolicy: "",
};

const CHECKS: Record<keyof RequestOptions, (value: unknown) => unknown> = {
  cache: oneOf("default", "no-store", "reload", "no-cache", "force-cache", "only-if-cached"),
  credentials: oneOf("omit", "same-origin", "include"),
  integrity: String,
  keepalive: Boolean,
  mode: oneOf("same-origin", "no-cors", "cors"),
  redirect: oneOf("follow", "error", "manual"),
  referrer: (value) => (value === "" ? "" : new URL(`${value}`).href),
  referrerPolicy: oneOf(
    "",
    "no-referrer",
    "no-referrer-when-downgrade",
    "same-origin",
    "origin",
    "strict-origin",
    "origin-when-cross-origin",
    "strict-origin-when-cross-origin",
    "unsafe-url",
  ),
};
const NAMES = Object.keys(CHECKS) as (keyof RequestOptions)[];

/**
 * The options of a new request.
 *
 * @param from those of the request that it is made of
 * @throws `TypeError` for a value that an option cannot have, alone or beside another one
 */
export function requestOptions(
  given: Partial<RequestOptions> & { window?: null },
  method: string,
  from: RequestOptions = DEFAULTS,
): RequestOptions {
  if (given.window !== undefined && given.window !== null) throw new TypeError("the option window can only be null");
  let options = from;
  if (from !== DEFAULTS && Object.keys(given).length > 0) {
    options = { ...from, referrer: DEFAULTS.referrer, referrerPolicy: DEFAULTS.referrerPolicy };
  }
  for (const name of NAMES) {
    const value = given[name];
    if (value !== undefined && value !== options[name]) options = { ...options, [name]: CHECKS[name](value) };
  }
  const { cache, mode } = options;
  if (cache === "only-if-cached" && mode !== "same-origin")
    throw new TypeError('the cache mode only-if-cached needs the mode "same-origin"');
  if (mode === "no-cors" && method !== "GET" && method !== "HEAD" && method !== "POST")
    throw new TypeError(`the mode no-cors allows no method ${method}`);
  return options;
}

function oneOf(...values: string[]): (value: unknown) => string {
  return (value) => {
    const text = `${value}`;
    if (!values.includes(text)) throw new TypeError(`an option of a request is none of ${values.join(", ")}`);
    return text;
  };
}
