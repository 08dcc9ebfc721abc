/** The cookies of a browser. The class does not use a test framework, because benchmarks run without one. */
export class Jar {
  readonly cookies = new Map<string, string>();

  constructor(setCookies: readonly string[] = []) {
    this.take(setCookies);
  }

  static of(request: Request): Jar {
    return new Jar((request.headers.get("cookie") ?? "").split("; ").filter((pair) => pair !== ""));
  }

  /** Takes over the cookies of a response. */
  take(setCookies: readonly string[]): void {
    for (const line of setCookies) {
      const [, name = "", value = "", attributes = ""] = /^([^=]+)=([^;]*)(.*)$/.exec(line) ?? [];
      if (/max-age=0(?!\d)/i.test(attributes)) this.cookies.delete(name);
      else this.cookies.set(name, value);
    }
  }

  get header(): string {
    return [...this.cookies].map(([name, value]) => `${name}=${value}`).join("; ");
  }

  request(url = "http://app.example/account"): Request {
    return new Request(url, { headers: this.header === "" ? {} : { cookie: this.header } });
  }
}
