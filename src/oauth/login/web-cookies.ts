/** A cookie that only this host gets, over https or on a loopback host, and no script reads; Max-Age 0 removes it. */
export function setCookie(name: string, value: string, maxAgeSeconds: number, path = "/"): string {
  // Lax: the browser comes back from another site.
  return `${name}=${value}; Path=${path}; Max-Age=${maxAgeSeconds}; Secure; HttpOnly; SameSite=Lax`;
}

/** The path of a cookie for one page: where a semicolon would end the attribute, the folder of that part. */
export function cookiePath(page: string): string {
  return new URL(page).pathname.replace(/[^/]*;.*$/, "");
}

/** The value of a cookie in a `Cookie` header; undefined if it is missing or comes twice. */
export function readCookie(header: string, name: string): string | undefined {
  const [value, ...more] = header
    .split(";")
    .map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(`${name}=`))
    .map((pair) => pair.slice(name.length + 1));
  return more.length === 0 && value !== "" ? value : undefined;
}

/** The names of the cookies in a `Cookie` header that have a form, in its order: the oldest first (RFC 6265 section 5.4). */
export function cookieNames(header: string, form: RegExp): string[] {
  return header.split(";").flatMap((pair) => {
    const [name = ""] = pair.trim().split("=");
    return form.test(name) ? [name] : [];
  });
}
