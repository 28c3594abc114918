/** A page that a browser shows. */
export interface Page {
  url: URL;
  status: number;
  headers: Headers;
  html: string;
}

/** A browser without scripts: follows redirects inside one site, keeps cookies by path, posts forms. */
export class Browser {
  readonly #site: string;
  readonly #cookies = new Map<string, { path: string; value: string }>();

  constructor(site: string) {
    this.#site = site;
  }

  /** Opens an address; a redirect out of the site is not followed but returned. */
  async open(url: URL | string, form?: Record<string, string>): Promise<Page | URL> {
    let target = new URL(url, this.#site);
    let body = form && new URLSearchParams(form);
    for (let hops = 0; hops < 10; hops++) {
      if (target.origin !== this.#site) return target;
      const response = await fetch(target, {
        method: body ? "POST" : "GET",
        redirect: "manual",
        headers: { cookie: this.#cookieHeader(target.pathname), accept: "text/html", origin: this.#site },
        ...(body && { body }),
      });
      for (const line of response.headers.getSetCookie()) this.#keep(line, target.pathname);
      const location = response.headers.get("location");
      if (location === null) {
        return { url: target, status: response.status, headers: response.headers, html: await response.text() };
      }
      await response.body?.cancel();
      target = new URL(location, target);
      body = undefined;
    }
    throw new Error("too many redirects");
  }

  /** Presses the button of a page's form that has a value, or the first. */
  press(page: Page, name?: string, value?: string, filled: Record<string, string> = {}): Promise<Page | URL> {
    const action = /<form [^>]*action="([^"]*)"/.exec(page.html)?.[1];
    const hidden = [...page.html.matchAll(/<input type="hidden" name="([^"]*)" value="([^"]*)"/g)];
    const fields = Object.fromEntries(hidden.map(([, key = "", text = ""]) => [key, text]));
    if (name !== undefined && !page.html.includes(`name="${name}" value="${value}"`)) throw new Error("no such button");
    const pressed = name === undefined ? {} : { [name]: value ?? "" };
    return this.open(new URL(action ?? page.url, page.url), { ...fields, ...filled, ...pressed });
  }

  #cookieHeader(path: string): string {
    return [...this.#cookies]
      .filter(([, cookie]) => path === cookie.path || path.startsWith(cookie.path.replace(/\/?$/, "/")))
      .map(([key, { value }]) => `${key.split(" ")[0]}=${value}`)
      .join("; ");
  }

  #keep(line: string, requested: string): void {
    const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
    const path = /; *path=([^;]*)/i.exec(line)?.[1] ?? requested;
    if (value === "") this.#cookies.delete(`${name} ${path}`);
    else this.#cookies.set(`${name} ${path}`, { path, value });
  }
}

/** What has to be a page. */
export function asPage(result: Page | URL): Page {
  if (result instanceof URL) throw new Error(`not a page but ${result.href}`);
  return result;
}

/** What has to lead out of the site. */
export function asCallback(result: Page | URL): URL {
  if (!(result instanceof URL)) throw new Error(`not a redirect but ${result.html}`);
  return result;
}
